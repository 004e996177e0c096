#include "alerts/alert_sender.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "net/web_request.h"
#include "privacy/content.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t answer_chars_max = 200;

/// The last line that says anything.
std::string last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const auto begin = text.find_last_of("\r\n");
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

std::string shortened(const std::string& text) {
  auto safe = std::string(first_characters(redact(text), answer_chars_max));
  for (auto& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return safe;
}

/// Stops something after a time, unless it is over before.
class Timeout {
 public:
  Timeout(Millis time, const std::stop_token& outer)
      : thread_([this, time, outer](const std::stop_token& over) {
          const std::stop_callback ring(outer, [this] {
            const std::lock_guard guard(mutex_);
            changed_.notify_all();
          });
          std::unique_lock guard(mutex_);
          changed_.wait_for(guard, over, time, [&] { return outer.stop_requested(); });
          if (!over.stop_requested()) source_.request_stop();
        }) {}
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace

bool AlertSender::is_single() const {
  return options_.channel.type == ChannelType::webhook &&
         options_.channel.format == AlertFormat::pagerduty;
}

SendResult AlertSender::send(const AlertMessage& message, const std::stop_token& stop) const {
  switch (options_.channel.type) {
    case ChannelType::webhook:
      return post_it(message, stop);
    case ChannelType::command:
      return run_it(message, stop);
    case ChannelType::log:
      break;
  }
  auto text = text_of(message, options_.wording);
  std::ranges::replace(text, '\n', ' ');
  options_.log(text);
  return {.answer = "it is in the log"};
}

SendResult AlertSender::post_it(const AlertMessage& message, const std::stop_token& stop) const {
  const auto& [channel, secrets, wording, log] = options_;
  WebRequest spec{.url = secrets.url,
                  .headers = {{"Idempotency-Key", message.key}},
                  .body = body_of(message, channel.format, wording, secrets.routing_key),
                  .at_most = channel.timeout,
                  .ca_file = channel.ca_file};
  if (!secrets.secret.empty())
    spec.headers.emplace_back("X-Watchdog-Signature",
                              "sha256=" + hmac_sha256(secrets.secret, spec.body));
  const auto answer = ask_once(spec, stop);
  if (!answer) return {.kind = SendResult::Kind::failed, .answer = answer.error().message};
  SendResult result{.answer = "it answered " + std::to_string(answer->status),
                    .retry_after = answer->retry_after};
  if (const auto said = shortened(answer->body); !said.empty()) result.answer += ": " + said;
  const int status = answer->status;
  if (status / 100 == 2) return result;
  const bool of_this_message = status == 400 || status == 413 || status == 422;
  result.kind = of_this_message ? SendResult::Kind::refused : SendResult::Kind::failed;
  return result;
}

SendResult AlertSender::run_it(const AlertMessage& message, const std::stop_token& stop) const {
  const auto& channel = options_.channel;
  const Timeout timeout(channel.timeout, stop);
  const auto end = run_process({.argv = channel.command,
                                .cwd = "/",
                                .input = body_of(message, AlertFormat::json, options_.wording, {}),
                                .head_bytes = 0,
                                .tail_bytes = 4'096},
                               {.stop = timeout.token()});
  if (!end) return {.kind = SendResult::Kind::failed, .answer = end.error().message};
  SendResult result{.kind = SendResult::Kind::failed};
  if (end->stopped) {
    result.answer = "it did not end within " + std::to_string(channel.timeout.count()) + " ms";
  } else if (end->signal) {
    result.answer = "signal " + std::to_string(*end->signal) + " ended it";
  } else {
    result.answer = "it ended with " + std::to_string(end->code.value_or(0));
    if (end->code == 0) result.kind = SendResult::Kind::taken;
  }
  const auto said = shortened(last_line(end->err_tail.empty() ? end->tail : end->err_tail));
  if (!said.empty()) result.answer += ": " + said;
  return result;
}

}  // namespace watchdog::monitor
