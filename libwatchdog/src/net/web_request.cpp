#include "net/web_request.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "net/http_client.h"

namespace watchdog {
namespace {

constexpr std::size_t answer_bytes_max = 1'024;

struct Destination {
  Url server;
  std::string target;
};

Result<Destination> destination_of(std::string_view text) {
  const auto question = std::min(text.find('?'), text.size());
  auto server = url_from(text.substr(0, question));
  if (!server) return Error{server.error().code, server.error().message, "url"};
  const auto query = text.substr(question);
  if (std::ranges::any_of(query, [](char c) { return c <= ' ' || c == 0x7F || c == '#'; })) {
    return Error{ErrorCode::invalid, "the URL of a server holds spaces or a # behind its ?", "url"};
  }
  // A slash at its end is part of the path here.
  const bool slash = text.substr(0, question).ends_with('/') || server->path.empty();
  auto target = server->path + (slash ? "/" : "") + std::string(query);
  server->path.clear();
  return Destination{std::move(*server), std::move(target)};
}

std::optional<Millis> seconds_in(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || seconds < 0 ||
      seconds > 86'400) {
    return std::nullopt;
  }
  return Millis{seconds * 1'000};
}

}  // namespace

Result<void> check_web_url(std::string_view url) {
  const auto destination = destination_of(url);
  return destination ? Result<void>{} : destination.error();
}

Result<WebAnswer> ask_once(const WebRequest& spec, const std::stop_token& stop) {
  auto destination = destination_of(spec.url);
  if (!destination) return destination.error();
  const auto name = destination->server.text();
  auto client = HttpClient::to(std::move(destination->server),
                               {.ca_file = spec.ca_file, .idle_connections_max = 0});
  if (!client) return client.error();
  HttpRequest request{.method = spec.method,
                      .target = std::move(destination->target),
                      .headers = spec.headers,
                      .body = spec.body,
                      .at_most = spec.at_most};
  if (spec.method == "POST") request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Connection", "close");
  WebAnswer answer;
  const auto keep = [&](const HttpHead&, std::string_view piece) {
    answer.body.append(piece.substr(0, answer_bytes_max - answer.body.size()));
    return answer.body.size() < answer_bytes_max;
  };
  const auto head = client->ask(request, keep, stop);
  if (!head) {
    const auto& fault = head.error();
    const bool late = fault.trouble == HttpTrouble::late;
    return Error{
        fault.trouble == HttpTrouble::cancelled ? ErrorCode::cancelled : ErrorCode::unavailable,
        name + ": " +
            (late ? "no answer within " + std::to_string(spec.at_most.count()) + " ms"
                  : fault.message)};
  }
  answer.status = head->status;
  answer.retry_after = seconds_in(head->header("Retry-After"));
  return answer;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &bytes);
  std::string digits;
  for (unsigned at = 0; at < bytes; ++at) {
    constexpr std::string_view hex = "0123456789abcdef";
    digits += hex[digest.at(at) >> 4U];
    digits += hex[digest.at(at) & 15U];
  }
  return digits;
}

}  // namespace watchdog
