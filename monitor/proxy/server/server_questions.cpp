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

Told ServerQuestions::ask(std::string_view path, std::optional<Millis> at_most,
                          const std::stop_token& stop) {
  HttpRequest request{.target = options_.server.path + std::string(path), .at_most = at_most};
  request.headers = {{"Accept", "application/json, text/plain"}};
  if (!options_.api_key.empty())
    request.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  Told told;
  const auto head = http_.ask(
      request,
      [&](const HttpHead&, std::string_view piece) {
        told.body.append(piece.substr(0, telling_bytes_max - told.body.size()));
        return told.body.size() < telling_bytes_max;
      },
      stop);
  if (!head) {
    told.trouble = head.error().trouble;
    told.message = head.error().message;
    told.asked = told.trouble == HttpTrouble::refused ? Asked::refused : Asked::waiting;
    return told;
  }
  told.asked = Asked::answered;
  told.status = head->status;
  told.server = head->header("server");
  told.started = seconds_in(head->header("process-start-time-unix"));
  told.from_internet = head->from_internet;
  return told;
}

ServerQuestions::Found ServerQuestions::find(const std::stop_token& stop) {
  const Millis until = system_clock().since_boot() + finding_time;
  Found found;
  for (const auto path : telling_paths) {
    const Millis left = until - system_clock().since_boot();
    if (left <= Millis{0}) return {.last = std::move(found.last)};
    found.last = ask(path, left, stop);
    const auto& told = found.last;
    if (told.asked != Asked::answered) return {.last = std::move(found.last)};
    found.kind = server_of(path, told.status, told.server, told.body);
    if (*found.kind != ServerKind::unknown) return found;
    if (told.status >= 500 || told.status == 429) return {.last = std::move(found.last)};
  }
  return found;
}

}  // namespace watchdog::monitor
