// A request is read at once: inflated, decoded, mapped to a batch for each session. The answer goes
// out when the last batch is durable or refused. OTLP has its own answers, in the encoding of the
// request. A success is an empty message, or counts the records that can never be stored. An error
// is a google.rpc.Status. An exporter sends again only after 429, 502, 503 and 504, so a batch that
// the store could not take now makes the answer 503. The records that were stored are known by
// their event ids and are not stored twice.
#include <atomic>
#include <mutex>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "api/routes.h"
#include "ingest/gzip.h"
#include "ingest/otlp.h"
#include "ingest/trace_parent.h"
#include "judge/source_note.h"

namespace watchdog::monitor {
namespace {

/// Of a body, also after it was inflated.
constexpr std::size_t otlp_bytes_max = 20UL * 1024 * 1024;

constexpr std::string_view json_type = "application/json";
constexpr std::string_view protobuf_type = "application/x-protobuf";

/// The codes of google.rpc.Code that are used.
enum class RpcCode : std::int8_t {
  invalid_argument = 3,
  resource_exhausted = 8,
  unimplemented = 12,
  unavailable = 14
};

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view header) {
  std::string type(header.substr(0, header.find_first_of("; \t")));
  for (auto& letter : type)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return type;
}

std::optional<OtlpEncoding> encoding_of(const Request& request) {
  const auto type = media_type(request.content_type);
  if (type == json_type) return OtlpEncoding::json;
  if (type == protobuf_type || type == "application/protobuf") return OtlpEncoding::protobuf;
  return std::nullopt;
}

Response encoded(OtlpEncoding encoding, int status, std::string body) {
  return {.status = status,
          .body = std::move(body),
          .content_type = std::string(encoding == OtlpEncoding::json ? json_type : protobuf_type)};
}

/// google.rpc.Status
Response failure(OtlpEncoding encoding, int status, RpcCode code, std::string_view message) {
  std::string body;
  if (encoding == OtlpEncoding::json) {
    JsonWriter out;
    out.open_object().field("code", static_cast<int>(code)).field("message", message);
    out.close_object();
    body = out.finish();
  } else {
    protozero::pbf_writer out(body);
    out.add_int32(1, static_cast<int>(code));
    out.add_string(2, message.data(), message.size());
  }
  auto response = encoded(encoding, status, std::move(body));
  if (code == RpcCode::unavailable) response.extra_headers = "Retry-After: 2\r\n";
  return response;
}

Response failure(OtlpEncoding encoding, const Error& error) {
  if (error.code == ErrorCode::exhausted)
    return failure(encoding, 413, RpcCode::resource_exhausted, error.message);
  if (error.code == ErrorCode::unavailable || error.code == ErrorCode::corrupt)
    return failure(encoding, 503, RpcCode::unavailable, error.message);
  return failure(encoding, 400, RpcCode::invalid_argument, error.message);
}

/// Export*ServiceResponse. `rejected`: records that were not stored and never can be.
Response success(OtlpEncoding encoding, OtlpSignal signal, std::size_t rejected,
                 const std::string& why) {
  if (encoding == OtlpEncoding::json) {
    JsonWriter out;
    out.open_object();
    if (rejected > 0) {
      constexpr const char* names[] = {"rejectedLogRecords", "rejectedSpans", "rejectedDataPoints"};
      const auto* name = names[static_cast<std::size_t>(signal)];
      out.key("partialSuccess").open_object().field(name, std::to_string(rejected));
      out.field("errorMessage", why).close_object();
    }
    out.close_object();
    return encoded(encoding, 200, out.finish());
  }
  std::string body;
  if (rejected > 0) {
    std::string partial;
    protozero::pbf_writer inner(partial);
    inner.add_int64(1, static_cast<std::int64_t>(rejected));
    inner.add_string(2, why);
    protozero::pbf_writer(body).add_message(1, partial);
  }
  return encoded(encoding, 200, std::move(body));
}

/// The answer to a request, while its batches are on their way.
struct Pending {
  Pending(CallPtr whose, OtlpSignal kind, OtlpEncoding form, std::size_t batches)
      : call(std::move(whose)), signal(kind), encoding(form), left(batches) {}

  CallPtr call;
  OtlpSignal signal;
  OtlpEncoding encoding;
  std::atomic<std::size_t> left;
  std::mutex mutex;
  std::size_t rejected = 0;
  std::string why;
  std::optional<Error> trouble;  ///< Why some could not be stored now.

  void note(const Result<Receipt>& receipt, std::size_t reports) {
    if (!receipt) {
      const std::lock_guard guard(mutex);
      const auto& error = receipt.error();
      const bool again = error.code == ErrorCode::unavailable || error.code == ErrorCode::corrupt;
      if (again) {
        trouble = error;
      } else {
        rejected += reports;
        why = error.message;
      }
    }
    if (left.fetch_sub(1) > 1) return;
    call->reply(trouble ? failure(encoding, *trouble) : success(encoding, signal, rejected, why));
  }
};

OtlpKnown known_of(const Backend& backend, const std::string& session) {
  const auto watched = backend.watched(session);
  if (!watched) return {};
  const auto& history = watched->judged.history;
  OtlpKnown known{.newest = newest_report(history)};
  if (history.lifecycle == Lifecycle::waiting) known.waiting_for = history.notes->waiting_for;
  if (history.notes->budget.has()) known.used = history.notes->budget->figures;
  const auto& limits = known.used.limits;
  known.has_limits = limits.steps || limits.tool_calls || limits.tokens || limits.cost;
  return known;
}

void store(const CallPtr& call, OtlpSignal signal, OtlpEncoding encoding,
           std::vector<Batch> batches) {
  if (batches.empty()) return call->reply(success(encoding, signal, 0, {}));
  const auto pending = std::make_shared<Pending>(call, signal, encoding, batches.size());
  for (auto& batch : batches) {
    const auto reports = batch.reports.size();
    call->backend.append(std::move(batch), [pending, reports](const Result<Receipt>& receipt) {
      pending->note(receipt, reports);
    });
  }
}

void post_otlp(const CallPtr& call, OtlpSignal signal) {
  const auto encoding = encoding_of(call->request);
  if (!encoding) {
    return call->reply(failure(OtlpEncoding::json, 415, RpcCode::unimplemented,
                               "Content-Type must be application/json or application/x-protobuf"));
  }
  auto body = std::exchange(call->request.body, {});
  const auto coding = media_type(call->request.content_encoding);
  if (coding == "gzip") {
    auto text = inflated(body, otlp_bytes_max);
    if (!text) return call->reply(failure(*encoding, text.error()));
    body = std::move(*text);
  } else if (!coding.empty() && coding != "identity") {
    return call->reply(failure(*encoding, 415, RpcCode::unimplemented,
                               "Content-Encoding must be gzip, or absent"));
  }
  const auto records = otlp_records(signal, *encoding, body);
  if (!records) return call->reply(failure(*encoding, records.error()));
  store(call, signal, *encoding,
        otlp_batches(
            *records, system_clock().wall(), *call->telemetry,
            [call](const std::string& session) { return known_of(call->backend, session); },
            call->request.session));
}

}  // namespace

Response full_for_otlp(const Request& request) {
  return failure(encoding_of(request).value_or(OtlpEncoding::json), no_room());
}

void post_logs(const CallPtr& call) {
  post_otlp(call, OtlpSignal::logs);
}

void post_traces(const CallPtr& call) {
  post_otlp(call, OtlpSignal::traces);
}

void post_metrics(const CallPtr& call) {
  post_otlp(call, OtlpSignal::metrics);
}

void get_trace(const CallPtr& call) {
  const auto trace = std::exchange(call->id, {});
  if (!is_trace_id(trace))
    return call->reply(error_response(
        Error{ErrorCode::malformed, "a trace is 32 hexadecimal digits in lower case", "trace"}));
  call->id = call->telemetry->session_of_trace(trace);
  const Error unknown{ErrorCode::not_found, "no telemetry of this trace names a session", "trace"};
  if (call->id.empty()) return call->reply(error_response(unknown));
  // A session that is erased is not named any more.
  reading(call, [call, unknown](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row && row.error().code == ErrorCode::not_found)
      return call->reply(error_response(unknown));
    if (!row) return call->reply(error_response(row.error()));
    JsonWriter out;
    out.open_object().field("sessionId", call->id).close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
