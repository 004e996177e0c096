#include "alerts/alert_request.h"

#include <nlohmann/json.hpp>

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// A part of a path: everything but unreserved characters, `:` and `!` is encoded.
std::string path_part(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:!";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return out;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::optional<Millis> pause_in(const json& object, const char* name, double ms_each) {
  constexpr double day_of_ms = 86'400'000;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return {};
  const double ms = found->get<double>() * ms_each;
  if (!(ms >= 0 && ms <= day_of_ms)) return {};
  return Millis{static_cast<Millis::rep>(ms)};
}

}  // namespace

WebRequest alert_request(const AlertMessage& message, const AlertChannel& channel,
                         const ChannelSecrets& secrets, const AlertWording& wording) {
  WebRequest request{.url = secrets.url,
                     .headers = {{"Idempotency-Key", message.key}},
                     .at_most = channel.timeout,
                     .ca_file = channel.ca_file};
  Addressee addressee{.to = channel.to, .routing_key = secrets.routing_key};
  const auto show_token = [&] {
    if (!secrets.secret.empty())
      request.headers.emplace_back("Authorization", "Bearer " + secrets.secret);
  };
  switch (channel.format) {
    case AlertFormat::ntfy: {
      const auto slash = secrets.url.rfind('/');
      addressee.to = secrets.url.substr(slash + 1);
      request.url = secrets.url.substr(0, slash + 1);
      show_token();
      break;
    }
    case AlertFormat::telegram:
      request.url =
          without_slash(secrets.url) + "/bot" + path_part(secrets.secret) + "/sendMessage";
      break;
    case AlertFormat::matrix:
      request.method = "PUT";
      request.url = without_slash(secrets.url) + "/_matrix/client/v3/rooms/" +
                    path_part(channel.to) + "/send/m.room.message/" + path_part(message.key);
      request.headers.emplace_back("Content-Type", "application/json");
      show_token();
      break;
    default:
      break;
  }
  request.body = body_of(message, channel.format, wording, addressee);
  const bool signs = channel.format == AlertFormat::json || channel.format == AlertFormat::slack ||
                     channel.format == AlertFormat::pagerduty;
  if (signs && !secrets.secret.empty())
    request.headers.emplace_back("X-Watchdog-Signature",
                                 "sha256=" + hmac_sha256(secrets.secret, request.body));
  return request;
}

std::optional<Millis> pause_of(const WebAnswer& answer) {
  if (answer.retry_after || answer.status / 100 == 2) return answer.retry_after;
  const auto body = json::parse(answer.body, nullptr, false);
  if (!body.is_object()) return {};
  if (const auto pause = pause_in(body, "retry_after", 1'000)) return pause;
  if (const auto pause = pause_in(body, "retry_after_ms", 1)) return pause;
  const auto more = body.find("parameters");
  return more != body.end() && more->is_object() ? pause_in(*more, "retry_after", 1'000)
                                                 : std::nullopt;
}

}  // namespace watchdog::monitor
