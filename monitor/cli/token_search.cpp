#include "cli/token_search.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/token_file.h"

namespace watchdog::monitor {
namespace {

namespace ip = boost::asio::ip;

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

/// Returns an address as the kernel writes it: words of 32 bits, each in the order of this machine.
std::optional<ip::address> address_from(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  std::array<unsigned char, 16> bytes{};
  for (std::size_t at = 0; at < hex.size(); at += 8) {
    const auto word = number_from<std::uint32_t>(hex.substr(at, 8), 16);
    if (!word) return std::nullopt;
    std::memcpy(&bytes[at / 2], &*word, sizeof *word);
  }
  if (hex.size() == 8) return ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]});
  return ip::address_v6(bytes);
}

/// One form of an address that has two.
ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

std::string name_of_user(uid_t user) {
  const auto* entry = getpwuid(user);  // NOLINT(concurrency-mt-unsafe): the text is copied at once
  return entry == nullptr ? "user " + std::to_string(user) : std::string(entry->pw_name);
}

}  // namespace

std::vector<uid_t> listeners_in(std::string_view table, const ip::address& address,
                                std::uint16_t port) {
  std::vector<uid_t> users;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
    std::string number, local, remote, state, queues, timer, retries, user;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retries >> user))
      continue;
    const auto colon = local.rfind(':');
    if (state != listening || colon == local.npos) continue;
    const auto at = number_from<std::uint16_t>(std::string_view(local).substr(colon + 1), 16);
    const auto own = address_from(std::string_view(local).substr(0, colon));
    const auto uid = number_from<uid_t>(user, 10);
    if (at != port || !own || !uid) continue;
    if (own->is_unspecified() || plain(*own) == plain(address)) users.push_back(*uid);
  }
  return users;
}

std::string listener_fault(const std::string& address, std::uint16_t port,
                           std::optional<uid_t> owner) {
  const auto table = text_of("/proc/net/tcp") + text_of("/proc/net/tcp6");
  if (table.empty()) return {};
  boost::system::error_code ignored;
  const auto listeners = listeners_in(table, ip::make_address(address, ignored), port);
  const auto may_have_it = [&](uid_t user) {
    return user == geteuid() || user == 0 || user == owner;
  };
  const auto stranger = std::ranges::find_if_not(listeners, may_have_it);
  if (!listeners.empty() && stranger == listeners.end()) return {};
  return "the token is not sent, because " +
         (listeners.empty() ? std::string("no process of this machine listens there any more")
                            : name_of_user(*stranger) + " listens there, not you") +
         ". If that is your monitor, name the file of its tokens with --token-file, or give it TLS";
}

FoundToken token_in(const std::filesystem::path& file) {
  // It belongs to this user or to root, or it is not read. The path may lead to another file by
  // now, so nobody asks it for the owner.
  const auto tokens = read_token_file(file);
  return tokens ? FoundToken{.secret = acting_secret(*tokens), .owner = geteuid()} : FoundToken{};
}

std::string token_file_in(const Response& refusal) {
  const auto body = nlohmann::json::parse(refusal.body, nullptr, false);
  const auto place = nlohmann::json::json_pointer("/error/tokenFile");
  if (!body.is_object() || !body.contains(place) || !body[place].is_string()) return {};
  return body[place].get<std::string>();
}

FoundToken token_after(const Response& refusal, const Sources& sources) {
  if (const std::filesystem::path named = token_file_in(refusal); named.is_absolute())
    if (auto found = token_in(named); !found.secret.empty()) return found;
  const auto configuration = Configuration::load(sources);
  return token_in(token_file(configuration ? configuration->settings() : Settings{}));
}

}  // namespace watchdog::monitor
