// One thread does all, in rounds. It reads what is new since the last round. Then it sends batches
// until the queue is empty or the collector fails. After a failure that may pass, batches wait for
// a growing pause; reading goes on.
#include "export/otlp_exporter.h"

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include "codec/json.h"
#include "export/export_reader.h"
#include "files/regular_file.h"
#include "net/web_request.h"

namespace watchdog::monitor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t batch_items_max = 512;
constexpr std::size_t batch_bytes_max = 1024 * 1024;
constexpr Millis answer_max{10'000};
constexpr Millis farewell{3'000};
constexpr std::size_t headers_max = 16;

bool may_pass(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/// The items that the collector refused for good, as its answer says.
std::int64_t rejected_in(const std::string& body) {
  if (!is_json(body)) return 0;
  const auto answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object()) return 0;
  const auto partial = answer.find("partialSuccess");
  if (partial == answer.end() || !partial->is_object()) return 0;
  std::int64_t count = 0;
  for (const auto* name : {"rejectedSpans", "rejectedLogRecords"}) {
    const auto found = partial->find(name);
    if (found == partial->end()) continue;
    if (found->is_number_integer()) count += found->get<std::int64_t>();
    if (found->is_string()) count += std::atoll(found->get_ref<const std::string&>().c_str());
  }
  return std::clamp(count, std::int64_t{0}, std::int64_t{batch_items_max});
}

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

Result<ExportHeaders> export_headers(std::string_view text) {
  ExportHeaders headers;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const auto colon = line.find(':');
    const auto name = line.substr(0, std::min(colon, line.size()));
    const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char letter) {
      return letter < 0x80 && (std::isalnum(letter) != 0 || letter == '-' || letter == '_');
    });
    if (colon == std::string_view::npos || !is_name || headers.size() == headers_max) {
      return Error{ErrorCode::invalid, "line " + std::to_string(number) +
                                           " must be \"Name: value\"; at most " +
                                           std::to_string(headers_max) + " lines are allowed"};
    }
    headers.emplace_back(name, without_blanks(line.substr(colon + 1)));
  }
  return headers;
}

Result<ExportHeaders> export_headers(const ExportSettings& settings) {
  constexpr std::size_t bytes_max = 16 * 1024;
  if (settings.headers_file.empty()) return ExportHeaders{};
  const auto fault = [&](const std::string& message) {
    return Error{ErrorCode::invalid,
                 "export.otlp.headers_file: " + settings.headers_file.string() + " " + message,
                 "headers_file"};
  };
  const auto text = read_regular_file(settings.headers_file, bytes_max, Readers::owner);
  if (!text) return fault(text.error().message);
  auto headers = export_headers(*text);
  return headers ? headers : fault(headers.error().message);
}

struct OtlpExporter::State {
  explicit State(Options given)
      : options(std::move(given)),
        reader({.database = options.database, .judges = options.judges, .judged = options.judged}) {
  }

  Options options;
  ExportReader reader;
  std::deque<ExportItem> queue;
  std::size_t queue_bytes = 0;
  SteadyTime send_at{};
  Millis pause{};
  bool failing = false;
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::jthread thread;  ///< The last: it uses all others.

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      read();
      if (std::chrono::steady_clock::now() >= send_at) send(stop, answer_max);
      std::unique_lock guard(mutex);
      stopped.wait_for(guard, stop, options.every, [] { return false; });
    }
    read();
    if (!failing) send({}, farewell);
  }

  void read() {
    for (auto& item : reader.read()) {
      queue_bytes += item.json.size();
      queue.push_back(std::move(item));
    }
    std::int64_t dropped = 0;
    for (; queue_bytes > options.queue_bytes_max; ++dropped) forget_first();
    count_dropped(dropped);
  }

  void forget_first() {
    queue_bytes -= queue.front().json.size();
    queue.pop_front();
  }

  void count_dropped(std::int64_t count) const {
    if (options.metrics != nullptr && count > 0) options.metrics->export_dropped.add(count);
  }

  void send(const std::stop_token& stop, Millis at_most) {
    const auto end = std::chrono::steady_clock::now() + at_most;
    while (!queue.empty() && send_batch(stop, at_most) && !stop.stop_requested() &&
           std::chrono::steady_clock::now() < end) {
    }
  }

  /// Sends the first items of one signal. False: they stay for a later try.
  bool send_batch(const std::stop_token& stop, Millis at_most) {
    const auto signal = queue.front().signal;
    std::vector<std::string> items;
    std::size_t bytes = 0;
    for (const auto& item : queue) {
      if (item.signal != signal || items.size() == batch_items_max) break;
      bytes += item.json.size();
      if (bytes > batch_bytes_max && !items.empty()) break;
      items.push_back(item.json);
    }
    auto url = options.endpoint;
    while (url.ends_with('/')) url.pop_back();
    const auto answer =
        ask_once({.url = url + (signal == ExportSignal::traces ? "/v1/traces" : "/v1/logs"),
                  .headers = options.headers,
                  .body = export_request(signal, items, options.version),
                  .at_most = at_most},
                 stop);
    if (!answer && answer.error().code == ErrorCode::cancelled) return false;
    const bool waits =
        answer ? may_pass(answer->status) : answer.error().code != ErrorCode::invalid;
    note(answer);
    if (waits) {
      pause = std::clamp(pause * 2, options.retry_first, options.retry_longest);
      const auto asked = answer && answer->retry_after ? *answer->retry_after : Millis{};
      send_at = std::chrono::steady_clock::now() +
                std::max(pause, std::min(asked, options.retry_longest));
      return false;
    }
    pause = {};
    const auto count = static_cast<std::int64_t>(items.size());
    const bool accepted = answer && answer->status / 100 == 2;
    const auto lost = accepted ? std::min(rejected_in(answer->body), count) : count;
    count_dropped(lost);
    if (options.metrics != nullptr) options.metrics->export_sent.add(count - lost);
    for (std::int64_t at = 0; at < count; ++at) forget_first();
    return true;
  }

  /// Says that the collector fails, and that it does no more, once each.
  void note(const Result<WebAnswer>& answer) {
    const bool well = answer && answer->status / 100 == 2;
    if (!well && !failing) {
      options.log("export failed: " +
                  (answer ? "the collector answers " + std::to_string(answer->status)
                          : answer.error().message) +
                  ". The monitor goes on and tries again.");
    }
    if (well && failing) options.log("export recovered");
    failing = !well;
  }
};

OtlpExporter::OtlpExporter(Options options) : state_(std::make_unique<State>(std::move(options))) {
  // Before anybody can report: the events from now on count.
  (void)state_->reader.open();
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

OtlpExporter::~OtlpExporter() {
  state_->thread.request_stop();
  state_->thread.join();
}

}  // namespace watchdog::monitor
