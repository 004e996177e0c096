// `chat` finds out which server it is, shapes the request for it, and asks. If the server refuses a
// field, it asks again in a plainer shape. The status of the head decides whether the body is
// an answer or a refusal. The kind of server is remembered, unless the server or its gateway failed
// to answer. `beside` allows a check only where it can displace no agent's prompt.
#include "watchdog/model_client.h"

#include <algorithm>
#include <mutex>
#include <random>
#include <utility>

#include "llm/answer_reader.h"
#include "llm/failures.h"
#include "llm/request.h"
#include "llm/server_probe.h"
#include "llm/slots.h"
#include "net/http_client.h"
#include "net/url.h"
#include "watchdog/reasons.h"
#include "watchdog/time.h"

namespace watchdog {
namespace {

/// For all questions about the server itself, asked in one go.
constexpr Millis probe_time{2'000};

/// Of the body of a refusal.
constexpr std::size_t refusal_bytes_max = 65'536;

bool is_good(int status) {
  return status >= 200 && status < 300;
}

/// A key becomes part of a header line.
bool is_header_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

/// Servers describe themselves beside the API, not within it.
std::string root_of(std::string_view path) {
  static constexpr std::string_view version = "/v1";
  if (!path.ends_with(version)) return {};
  path.remove_suffix(version.size());
  return std::string(path);
}

/// The known facts about the server.
struct Found {
  ServerKind kind = ServerKind::unknown;
  bool from_internet = false;
};

Failure not_asked(std::string why) {
  return {.reason = std::string(reasons::not_asked), .message = std::move(why)};
}

}  // namespace

struct ModelClient::State {
  State(Options chosen, Url url, HttpClient connections)
      : options(std::move(chosen)),
        server(std::move(url)),
        root(root_of(server.path)),
        name{.url = server.text(), .secret = options.api_key},
        http(std::move(connections)) {}

  Options options;
  Url server;
  std::string root;  ///< The path under which the server describes itself.
  ServerName name;
  HttpClient http;

  std::mutex mutex;
  std::optional<Found> found;
  CheckSeeds seeds{std::random_device{}()};

  [[nodiscard]] HttpRequest request(std::string_view method, std::string target) const {
    HttpRequest request{.method = method, .target = std::move(target)};
    request.headers = {{"Accept", "application/json, text/event-stream"}};
    if (!options.api_key.empty())
      request.headers.emplace_back("Authorization", "Bearer " + options.api_key);
    return request;
  }

  struct ProbeAnswer {
    HttpHead head;
    std::string body;
  };

  /// Returns the server's answer about itself, if it comes before `until` (since boot).
  std::optional<ProbeAnswer> probe(std::string_view path, Millis until,
                                   const std::stop_token& stop) {
    auto question = request("GET", root + std::string(path));
    question.at_most = until - system_clock().since_boot();
    if (*question.at_most <= Millis{0}) return std::nullopt;
    std::string body;
    auto head = http.ask(
        question,
        [&](const HttpHead&, std::string_view piece) {
          body.append(piece);
          return body.size() <= probe_bytes_max;
        },
        stop);
    if (!head) return std::nullopt;
    return ProbeAnswer{std::move(*head), std::move(body)};
  }

  /// Remembered, unless the server could not be reached, or only a gateway before it.
  Found find(const std::stop_token& stop) {
    {
      const std::lock_guard guard(mutex);
      if (found) return *found;
    }
    const Millis until = system_clock().since_boot() + probe_time;
    Found now;
    for (const auto path : probe_paths) {
      const auto reply = probe(path, until, stop);
      if (!reply) return {};
      const HttpHead& head = reply->head;
      now = Found{.kind = server_of(path, head.status, head.header("server"), reply->body),
                  .from_internet = head.from_internet};
      if (now.kind != ServerKind::unknown) break;
      if (head.status >= 500 || head.status == 429) return {};
    }
    const std::lock_guard guard(mutex);
    return found.emplace(now);
  }

  /// An answer, or why there is none and how to ask once more.
  struct Attempt {
    Result<ChatAnswer, Failure> answer;
    std::optional<RequestShape> plainer{};
  };

  Attempt ask(const ChatRequest& question, const RequestShape& shape, const ChatSink& sink,
              const std::stop_token& stop) {
    const std::string body = to_json(question, shape);
    auto post = request("POST", server.path + "/chat/completions");
    post.headers.emplace_back("Content-Type", "application/json");
    post.body = body;

    const AnswerBounds bounds{
        .bytes_max = std::min(options.answer_bytes_max,
                              question.answer_bytes_max.value_or(options.answer_bytes_max)),
        .probabilities = question.probabilities};
    std::string refusal;
    std::optional<AnswerReader> reader;
    HttpHead head;
    const auto receive = [&](const HttpHead& of, std::string_view piece) {
      if (head.status == 0) head = of;
      if (!is_good(head.status)) {
        refusal.append(piece.substr(0, refusal_bytes_max - refusal.size()));
        return refusal.size() < refusal_bytes_max;
      }
      if (!reader) reader.emplace(head.header("content-type"), bounds, sink, stop);
      return reader->feed(piece);
    };
    const auto asked = http.ask(post, receive, stop);
    if (asked) head = *asked;
    if (!asked && asked.error().trouble == HttpTrouble::cancelled) return {cancelled(name)};
    if (!asked && head.status == 0) return {failure_of(asked.error(), name)};
    if (!is_good(head.status)) {
      return {failure_of(head, refusal, name, system_clock().wall()),
              plainer(shape, body, head.status, refusal)};
    }
    if (!reader) reader.emplace(head.header("content-type"), bounds, sink, stop);
    auto answer = reader->end(!asked);
    if (answer) return {std::move(*answer)};
    return {failure_of(answer.error(), head, name)};
  }

  Result<ChatAnswer, Failure> chat(const ChatRequest& question, const ChatSink& sink,
                                   const std::stop_token& stop) {
    if (const auto field = wrong_field(question); !field.empty()) {
      return Failure{.reason = std::string(reasons::model_client_error),
                     .message = "the request's " + std::string(field) + " is not JSON"};
    }
    const RequestShape shape{
        .server = find(stop).kind, .model = options.model, .stream = options.stream};
    auto attempt = ask(question, shape, sink, stop);
    // Servers name one field at a time. Each try leaves something out, so this ends.
    while (attempt.plainer) attempt = ask(question, RequestShape(*attempt.plainer), sink, stop);
    return std::move(attempt.answer);
  }

  [[nodiscard]] std::string unreported() const {
    return "the model server at " + name.url + " does not tell now which of its slots are free";
  }

  Result<int, Failure> find_slot(const std::stop_token& stop) {
    const Millis until = system_clock().since_boot() + probe_time;
    const auto props = probe("/props", until, stop);
    const auto facts = props ? props_from(props->body) : std::nullopt;
    if (!facts || !facts->total_slots) return not_asked(unreported());
    if (facts->is_sleeping) return not_asked("the model server sleeps; a check would wake it");
    if (*facts->total_slots < 2) {
      return not_asked(
          "the model server has one slot, which holds the agent's prompt; name another server for "
          "checks, or start it with more slots");
    }
    const auto reply = probe("/slots", until, stop);
    const auto slots = reply ? slots_from(reply->body) : std::nullopt;
    if (!slots) return not_asked(unreported());
    const auto slot = free_slot(*slots, seeds);
    if (!slot) {
      return not_asked("each of the model server's " + std::to_string(slots->size()) +
                       " slots is at work or holds the prompt of an agent");
    }
    return *slot;
  }

  Result<ChatRequest, Failure> beside(ChatRequest request, const std::stop_token& stop) {
    const Found of = find(stop);
    if (stop.stop_requested()) return cancelled(name);
    switch (of.kind) {
      case ServerKind::vllm:
        return request;
      case ServerKind::llama_cpp: {
        const auto slot = find_slot(stop);
        if (!slot) return slot.error();
        request.slot = *slot;
        request.seed = seeds.next();
        return request;
      }
      case ServerKind::ollama:
        return not_asked(
            "Ollama does not let a check choose where it runs, so it might displace the agent's "
            "prompt; name another server for checks");
      case ServerKind::unknown:
        break;
    }
    if (server.tls && of.from_internet) return request;
    return not_asked("it is not known whether a check would displace the agent's prompt at " +
                     name.url + "; name another server for checks");
  }
};

ModelClient::ModelClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelClient::~ModelClient() = default;
ModelClient::ModelClient(ModelClient&&) noexcept = default;
ModelClient& ModelClient::operator=(ModelClient&&) noexcept = default;

Result<ModelClient> ModelClient::to(Options options) {
  auto url = url_from(options.base_url);
  if (!url) return url.error();
  if (url->path.empty()) url->path = "/v1";
  if (!is_header_text(options.api_key)) {
    return Error{ErrorCode::invalid, "a key has neither spaces nor characters beyond ASCII",
                 "api_key"};
  }
  auto http = HttpClient::to(
      *url, {.ca_file = options.ca_file, .idle_connections_max = options.idle_connections_max});
  if (!http) return http.error();
  return ModelClient(
      std::make_unique<State>(std::move(options), std::move(*url), std::move(*http)));
}

Result<ChatAnswer, Failure> ModelClient::chat(const ChatRequest& request, const ChatSink& sink,
                                              const std::stop_token& stop) {
  return state_->chat(request, sink, stop);
}

Model ModelClient::model() {
  return [state = state_.get()](const ChatRequest& request, const ChatSink& sink,
                                const std::stop_token& stop) {
    return state->chat(request, sink, stop);
  };
}

Model ModelClient::model_beside() {
  return [state = state_.get()](const ChatRequest& request, const ChatSink& sink,
                                const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    const auto allowed = state->beside(request, stop);
    if (!allowed) return allowed.error();
    return state->chat(*allowed, sink, stop);
  };
}

ServerKind ModelClient::server(const std::stop_token& stop) {
  return state_->find(stop).kind;
}

Result<ChatRequest, Failure> ModelClient::beside(ChatRequest request, const std::stop_token& stop) {
  return state_->beside(std::move(request), stop);
}

}  // namespace watchdog
