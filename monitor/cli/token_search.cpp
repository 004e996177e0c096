#include "cli/token_search.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/token_file.h"
#include "net/url.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {
namespace {

/// State of a socket that listens, as the kernel writes it.
constexpr std::string_view listening = "0A";

template <class Number>
std::optional<Number> number_from(std::string_view text, int base) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<uid_t> listener_at(const std::string& url) {
  const auto parsed = url_from(url);
  const auto port = parsed ? number_from<std::uint16_t>(parsed->port, 10) : std::nullopt;
  if (!port) return std::nullopt;
  return listener_in(text_of("/proc/net/tcp") + text_of("/proc/net/tcp6"), *port);
}

std::string secret_in(const std::filesystem::path& path) {
  const auto tokens = read_token_file(path);
  return tokens ? acting_secret(*tokens) : std::string();
}

}  // namespace

std::optional<uid_t> listener_in(std::string_view table, std::uint16_t port) {
  std::optional<uid_t> found;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
    std::string number, local, remote, state, queues, timer, retries, user;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retries >> user))
      continue;
    if (state != listening) continue;
    const auto at = number_from<std::uint16_t>(local.substr(local.rfind(':') + 1), 16);
    const auto uid = number_from<uid_t>(user, 10);
    if (at != port || !uid) continue;
    if (found && *found != *uid) return std::nullopt;
    found = uid;
  }
  return found;
}

std::string token_file_in(const Response& refusal) {
  const auto body = nlohmann::json::parse(refusal.body, nullptr, false);
  const auto place = nlohmann::json::json_pointer("/error/tokenFile");
  if (!body.is_object() || !body.contains(place) || !body[place].is_string()) return {};
  return body[place].get<std::string>();
}

std::string secret_after(const Response& refusal, const std::string& url) {
  if (const std::filesystem::path named = token_file_in(refusal); named.is_absolute()) {
    struct stat facts {};
    const auto listener = listener_at(url);
    const bool is_theirs =
        listener && stat(named.c_str(), &facts) == 0 && facts.st_uid == *listener;
    if (auto secret = is_theirs ? secret_in(named) : std::string(); !secret.empty()) return secret;
  }
  const auto configuration = Configuration::load({});
  return secret_in(token_file(configuration ? configuration->settings() : Settings{}));
}

}  // namespace watchdog::monitor
