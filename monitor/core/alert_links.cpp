#include "core/alert_links.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "net/web_request.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t signature_digits = 64;

/// The signed text. The session comes last and whole, so no two texts are alike.
std::string signed_text(AlertAnswer answer, std::int64_t alert, WallTime until,
                        std::string_view question, std::string_view session) {
  return "watchdog alert link 1\n" + std::string(name_of(answer)) + "\n" + std::to_string(alert) +
         "\n" + std::to_string(until.time_since_epoch().count()) + "\n" +
         (is_for_agent(answer) ? std::string(question) + "\n" : std::string()) +
         std::string(session);
}

/// Reads the part before the next dot, and removes it.
std::string_view read_part(std::string_view& text) {
  const auto part = text.substr(0, text.find('.'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::optional<std::int64_t> link_number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return whole && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string AlertLinks::token(AlertAnswer answer, const Alert& alert, WallTime until,
                              std::string_view question) const {
  return std::string(name_of(answer)) + "." + std::to_string(alert.id) + "." +
         std::to_string(until.time_since_epoch().count()) + "." +
         (is_for_agent(answer) ? std::string(question) + "." : std::string()) +
         hmac_sha256(key_, signed_text(answer, alert.id, until, question, alert.session));
}

std::vector<AlertButton> AlertLinks::buttons(const Alert& alert, WallTime now,
                                             const std::optional<HeldQuestion>& question) const {
  const bool asks = question && question->kind == QuestionKind::permission;
  const auto until = asks ? question->until : now + link_lasts;
  const auto link = [&](AlertAnswer answer) {
    return url_ + "/answer/" + token(answer, alert, until, asks ? question->id : "");
  };
  if (asks) return {{"Allow", link(AlertAnswer::allow)}, {"Deny", link(AlertAnswer::deny)}};
  return {{"Acknowledge", link(AlertAnswer::acknowledge)},
          {"Snooze for an hour", link(AlertAnswer::snooze)}};
}

bool AlertLinks::is_own(const AlertLink& link, const Alert& alert) const {
  const auto right = hmac_sha256(
      key_, signed_text(link.answer, link.alert, link.until, link.question, alert.session));
  return link.alert == alert.id && right.size() == link.signature.size() &&
         CRYPTO_memcmp(right.data(), link.signature.data(), right.size()) == 0;
}

std::optional<AlertLink> alert_link_from(std::string_view token) {
  const auto answer = named<AlertAnswer>(read_part(token));
  const auto alert = link_number(read_part(token));
  const auto until = link_number(read_part(token));
  std::string question;
  if (answer && is_for_agent(*answer)) question = read_part(token);
  if (!answer || !alert || !until || token.size() != signature_digits) return {};
  return AlertLink{.answer = *answer,
                   .alert = *alert,
                   .until = WallTime{Millis{*until}},
                   .question = std::move(question),
                   .signature = std::string(token)};
}

bool is_answered(const Alert& alert) {
  return !alert.acknowledged_by.empty() || alert.snoozed_until.has_value();
}

}  // namespace watchdog::monitor
