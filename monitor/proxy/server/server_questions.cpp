#include "proxy/server/server_questions.h"

#include <algorithm>
#include <charconv>

namespace watchdog::monitor {
namespace {

constexpr Millis finding_time{2'000};

std::optional<std::int64_t> seconds_in(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{}) return std::nullopt;
  return seconds;
}

}  // namespace

Result<ServerQuestions> ServerQuestions::to(Options options) {
  if (!std::ranges::all_of(options.api_key, [](char c) { return c > ' ' && c < 0x7F; }))
    return Error{ErrorCode::invalid, "a key has neither spaces nor characters beyond ASCII", "key"};
  auto http = HttpClient::to(options.server, {.ca_file = options.ca_file});
  if (!http) return http.error();
  return ServerQuestions(std::move(options), std::move(*http));
}

ServerAnswer ServerQuestions::ask(std::string_view path, std::optional<Millis> at_most,
                                  const std::stop_token& stop) {
  HttpRequest request{.target = options_.server.path + std::string(path), .at_most = at_most};
  request.headers = {{"Accept", "application/json, text/plain"}};
  if (!options_.api_key.empty())
    request.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  ServerAnswer given;
  const auto head = http_.ask(
      request,
      [&](const HttpHead&, std::string_view piece) {
        given.body.append(piece.substr(0, probe_bytes_max - given.body.size()));
        return given.body.size() < probe_bytes_max;
      },
      stop);
  if (!head) {
    given.trouble = head.error().trouble;
    given.message = head.error().message;
    given.asked = given.trouble == HttpTrouble::refused ? Asked::refused : Asked::waiting;
    return given;
  }
  given.asked = Asked::answered;
  given.status = head->status;
  given.server = head->header("server");
  given.started = seconds_in(head->header("process-start-time-unix"));
  given.from_internet = head->from_internet;
  return given;
}

ServerQuestions::Found ServerQuestions::find(const std::stop_token& stop) {
  const Millis until = system_clock().since_boot() + finding_time;
  Found found;
  for (const auto path : probe_paths) {
    const Millis left = until - system_clock().since_boot();
    if (left <= Millis{0}) return {.last = std::move(found.last)};
    found.last = ask(path, left, stop);
    const auto& given = found.last;
    if (given.asked != Asked::answered) return {.last = std::move(found.last)};
    found.kind = server_of(path, given.status, given.server, given.body);
    if (*found.kind != ServerKind::unknown) return found;
    if (given.status >= 500 || given.status == 429) return {.last = std::move(found.last)};
  }
  return found;
}

}  // namespace watchdog::monitor
