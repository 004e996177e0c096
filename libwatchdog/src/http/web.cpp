#include "watchdog/web.h"

#include <algorithm>

#include "http/client.h"

namespace watchdog {

Result<int> get(std::string_view url, Millis at_most, const std::stop_token& stop) {
  const auto question = std::min(url.find('?'), url.size());
  auto server = url_from(url.substr(0, question));
  if (!server) return server.error();
  const auto target =
      (server->path.empty() ? "/" : server->path) + std::string(url.substr(question));
  server->path.clear();
  const auto name = server->text();
  auto client = HttpClient::to(std::move(*server), {.idle_connections_max = 0});
  if (!client) return client.error();
  const auto head = client->ask(
      {.target = target, .headers = {{"Connection", "close"}}, .at_most = at_most},
      [](const HttpHead&, std::string_view) { return false; }, stop);
  if (head) return head->status;
  const bool cancelled = head.error().trouble == HttpTrouble::cancelled;
  return Error{cancelled ? ErrorCode::cancelled : ErrorCode::unavailable,
               name + ": " + head.error().message};
}

}  // namespace watchdog
