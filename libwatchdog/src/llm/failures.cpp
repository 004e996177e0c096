// Faults come from the connection, from a status, or from within an answer. Each gets a reason and
// whether a retry can help. An error within a stream gets the status that it would have had before
// it, so one rule judges both. A prompt that is too long is recognized first, because servers
// answer it with different statuses. The key leaves a quote before the quote is shortened.
#include "llm/failures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "llm/members.h"
#include "llm/retry_after.h"
#include "text/ascii.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

constexpr std::size_t quote_bytes_max = 300;

/// Shorter ones are no secrets, and would blot out parts of words.
constexpr std::size_t secret_bytes_min = 4;

std::string without(std::string text, const std::string& secret) {
  if (secret.size() < secret_bytes_min) return text;
  static constexpr std::string_view blot = "[key]";
  for (auto at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + blot.size()))
    text.replace(at, secret.size(), blot);
  return text;
}

/// With a replacement for each byte that is none.
std::string as_utf8(const std::string& text) {
  std::string json;
  append_json_string(json, text);
  const auto value = json_from(json);
  return value ? value->get<std::string>() : std::string();
}

bool has_any(const std::string& text, const auto& phrases) {
  return std::ranges::any_of(
      phrases, [&](std::string_view phrase) { return text.find(phrase) != std::string::npos; });
}

/// That the prompt is too long has a word of its own in few servers; the rest say it in English.
bool is_context_exceeded(const ErrorBody& error, int status) {
  static constexpr std::array<std::string_view, 3> words{
      "exceed_context_size_error", "context_length_exceeded", "context_window_exceeded"};
  static constexpr std::array<std::string_view, 13> phrases{
      "exceeds the available context size",    // llama.cpp, and Ollama on top of it
      "context size has been exceeded",        // llama.cpp, while it answers
      "maximum context length is",             // OpenAI, vLLM
      "context length is only",                // vLLM
      "longer than the maximum model length",  // vLLM
      "max_tokens must be at least 1, got -",  // vLLM: nothing is left for the answer
      "exceeds the context length",            // Ollama
      "exceeded max context length",           // Ollama
      "exceeds the model's context",           // others
      "exceeds the maximum context length",
      "exceeds maximum context length",
      "context length exceeded",
      "prompt is too long"};
  if (has_any(lower_case(error.type + " " + error.code), words)) return true;
  return (status == 400 || status == 413 || status == 422 || status >= 500) &&
         has_any(lower_case(error.message), phrases);
}

/// The status that an error within a stream would have had before it.
int status_of(const ErrorBody& error) {
  if (error.status != 0) return error.status;
  const std::string kind = lower_case(error.type + " " + error.code);
  const auto is = [&](std::string_view word) { return kind.find(word) != std::string::npos; };
  if (is("authentication") || is("invalid_api_key")) return 401;
  if (is("permission")) return 403;
  if (is("not_found")) return 404;
  if (is("rate_limit") || is("too_many_requests") || is("insufficient_quota")) return 429;
  if (is("invalid_request") || is("badrequest")) return 400;
  if (is("not_supported")) return 501;
  if (is("unavailable") || is("overloaded")) return 503;
  return 500;
}

struct Class {
  std::string_view reason;
  bool recoverable;
};

Class class_of(int status, const ErrorBody& error) {
  if (is_context_exceeded(error, status)) return {reasons::context_exceeded, false};
  if (status == 401 || status == 403) return {reasons::authentication, false};
  if (status == 408 || status == 425 || status == 429) {
    const bool unpaid = error.code == "insufficient_quota" || error.type == "insufficient_quota";
    return {reasons::rate_limited, !unpaid};  // waiting does not bring money
  }
  if (status >= 500) return {reasons::model_server_error, status != 501};
  return {reasons::model_client_error, false};
}

std::string with_quote(const std::string& message, const std::string& quote) {
  return quote.empty() ? message : message + ": " + quote;
}

}  // namespace

std::string ServerName::quote(std::string_view said) const {
  std::string plain;
  bool gap = false;
  for (const char c : without(std::string(said.substr(0, 65'536)), secret)) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins && plain.size() > 2 * quote_bytes_max) break;
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7F;
    if (!blank) {
      if (gap && !plain.empty()) plain += ' ';
      plain += c;
    }
    gap = blank;
  }
  plain = as_utf8(plain);
  if (plain.size() <= quote_bytes_max) return plain;
  plain.resize(quote_bytes_max - 3);
  while (!plain.empty() && (static_cast<unsigned char>(plain.back()) & 0xC0U) == 0x80U)
    plain.pop_back();
  if (!plain.empty() && static_cast<unsigned char>(plain.back()) >= 0xC0U) plain.pop_back();
  return plain + "…";
}

Failure cancelled(const ServerName& server) {
  return {.reason = std::string(reasons::cancelled),
          .message = "the question to the model server at " + server.url + " was called off"};
}

Failure failure_of(const HttpFault& fault, const ServerName& server) {
  const auto failure = [&](std::string_view reason, const char* what, bool recoverable) {
    return Failure{.reason = std::string(reason),
                   .message = with_quote("the model server at " + server.url + " " + what,
                                         server.quote(fault.message)),
                   .recoverable = recoverable};
  };
  switch (fault.trouble) {
    case HttpTrouble::cancelled:
      return cancelled(server);
    case HttpTrouble::host_not_found:
      return failure(reasons::host_not_found, "is not known by this name", false);
    case HttpTrouble::no_name_service:
      return failure(reasons::host_not_found, "cannot be looked up now", true);
    case HttpTrouble::refused:
      return failure(reasons::connection_refused, "cannot be reached", true);
    case HttpTrouble::untrusted:
      return failure(reasons::tls_failed, "cannot be trusted", false);
    case HttpTrouble::malformed:
      return failure(reasons::malformed_answer, "answered with something else", true);
    case HttpTrouble::late:
    case HttpTrouble::lost:
      break;
  }
  return failure(reasons::connection_lost, "was lost", true);
}

Failure failure_of(const HttpHead& head, std::string_view body, const ServerName& server,
                   WallTime now) {
  const ErrorBody error = error_body_from(body);
  const auto [reason, recoverable] = class_of(head.status, error);
  std::string message =
      "the model server at " + server.url + " answered " + std::to_string(head.status);
  if (head.status / 100 == 3)
    message += " (it has moved to " + server.quote(head.header("location")) + ")";
  return {
      .reason = std::string(reason),
      .message = with_quote(message, server.quote(error.message)),
      .recoverable = recoverable,
      .status = head.status,
      .retry_after = retry_after([&](std::string_view name) { return head.header(name); }, now)};
}

Failure failure_of(const AnswerFault& fault, const HttpHead& head, const ServerName& server) {
  Failure failure{.recoverable = true, .status = head.status};
  std::string what;
  std::string quote = server.quote(fault.excerpt);
  failure.reason = reasons::malformed_answer;
  switch (fault.kind) {
    case AnswerFault::Kind::cancelled:
      return cancelled(server);
    case AnswerFault::Kind::malformed:
      what = quote.empty()            ? "sent nothing but a head with status 200"
             : quote.starts_with('<') ? "answered with a web page"
                                      : "answered with something that is not a completion";
      break;
    case AnswerFault::Kind::too_large:
      what = "sent more than an answer may have";
      quote.clear();
      failure.recoverable = false;
      break;
    case AnswerFault::Kind::cut_off:
      failure.reason = reasons::connection_lost;
      what = "ended its answer in the middle";
      quote.clear();
      break;
    case AnswerFault::Kind::error: {
      const auto [reason, recoverable] = class_of(status_of(fault.error), fault.error);
      failure.reason = reason;
      failure.recoverable = recoverable;
      if (fault.error.status != 0) failure.status = fault.error.status;
      what = "failed in its answer";
      quote = server.quote(fault.error.message);
    }
  }
  failure.message = with_quote("the model server at " + server.url + " " + what, quote);
  return failure;
}

}  // namespace watchdog
