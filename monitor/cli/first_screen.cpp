// A first start reads its own database, so neither a token nor a certificate is in the way. A
// second start asks the address of the settings. Another program may answer there. So it gets no
// token in a URL, has little time for its first answer, and must answer as a monitor does.
#include "cli/first_screen.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/browser.h"
#include "cli/place.h"
#include "net/http_client.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Transcripts of a whole day may take longer than a person waits.
constexpr std::chrono::seconds transcripts_patience{10};
/// A monitor that has the database may not listen yet. Nothing else shows when it does.
constexpr int looks_max = 15;
constexpr std::chrono::milliseconds look_again{200};
constexpr Millis answer_patience{3'000};
constexpr int rows_max = 3;

std::int64_t number_in(const json& object, const char* name) {
  if (!object.is_object()) return -1;
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

json part_of(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

/// Returns whether a server answers. `is_refused` becomes true if nothing listens there.
bool answers(const std::string& server, bool& is_refused) {
  const auto url = url_from(server);
  if (!url) return false;
  auto client = HttpClient::to(*url, {});
  if (!client) return false;
  const auto head = client->ask({.target = "/readyz", .at_most = answer_patience},
                                [](const HttpHead&, std::string_view) { return true; });
  is_refused = !head && head.error().trouble == HttpTrouble::refused;
  return head.ok();
}

}  // namespace

Result<std::string> sessions_in_brief(Endpoint& endpoint) {
  const auto summary = endpoint.ask(Method::get, "/api/autonomous/summary");
  if (!summary) return summary.error();
  const auto rows = endpoint.ask(
      Method::get, "/api/autonomous/sessions?sort=attention&attention=needs_you&limit=" +
                       std::to_string(rows_max));
  if (!rows) return rows.error();
  const auto counts = json::parse(*summary, nullptr, false);
  const auto total = number_in(counts, "total");
  if (total < 0) return Error{ErrorCode::unavailable, "the answer is not that of a monitor"};
  if (total == 0) return std::string("no sessions yet");
  const auto attention = part_of(counts, "attention");
  const auto needed = std::max<std::int64_t>(number_in(attention, "needs_you"), 0);
  auto text = std::to_string(total) + (total == 1 ? " session: " : " sessions: ") +
              (needed == 0 ? "none needs you"
                           : std::to_string(needed) + (needed == 1 ? " needs you" : " need you"));
  for (const auto& [name, words] : {std::pair{"ready", " ready for you"},
                                    {"watch", " to watch"},
                                    {"working", " working"},
                                    {"resting", " resting"}}) {
    if (const auto count = number_in(attention, name); count > 0)
      text += ", " + std::to_string(count) + words;
  }
  std::int64_t shown_rows = 0;
  for (const auto& row : part_of(json::parse(*rows, nullptr, false), "sessions")) {
    if (!row.is_object()) continue;
    const auto title = title_in(row);
    text += "\n" + clipped("  " + (title == "–" ? id_in(row) : title) + " (" + shown(row, "state") +
                               "): " + reason_and_notices_in(row),
                           terminal_width());
    ++shown_rows;
  }
  if (needed > shown_rows) text += "\n  and " + std::to_string(needed - shown_rows) + " more";
  return text;
}

FirstScreen::FirstScreen(std::string database, Sources sources) {
  place_.database = std::move(database);
  place_.sources = std::move(sources);
}

void FirstScreen::note_caught_up() {
  {
    const std::lock_guard guard(mutex_);
    is_caught_up_ = true;
  }
  changed_.notify_all();
}

void FirstScreen::begin() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock guard(mutex_);
    const bool is_all =
        changed_.wait_for(guard, stop, transcripts_patience, [this] { return is_caught_up_; });
    guard.unlock();
    if (!stop.stop_requested()) show(is_all);
  });
}

void FirstScreen::show(bool is_all) const {
  auto endpoint = Endpoint::open(place_);
  if (!endpoint) return;
  const auto brief = sessions_in_brief(*endpoint);
  if (!brief) return;
  print_line(*brief + (is_all ? "" : "\nMore transcripts of the last day are being read.") +
             "\nTo see questions for permission: watchdog-monitor hooks install"
             "\nTo see the model server: watchdog-monitor serve --follow --upstream URL");
  std::fflush(stdout);
}

bool show_running_monitor(const Settings& settings, const Sources& sources) {
  Endpoint::Options place;
  place.server = server_of(settings.monitor);
  place.sources = sources;
  bool is_refused = false;
  bool is_there = answers(place.server, is_refused);
  for (int look = 1; !is_there && is_refused && look < looks_max; ++look) {
    std::this_thread::sleep_for(look_again);
    is_there = answers(place.server, is_refused);
  }
  if (!is_there) return false;
  auto endpoint = Endpoint::open(place);
  if (!endpoint) return false;
  const auto brief = sessions_in_brief(*endpoint);
  if (!brief) return false;
  const auto& own = settings.monitor.public_url;
  const auto page = own.empty() ? place.server : own;
  print_line("a monitor runs already\nopen " + page + "\n" + *brief);
  std::fflush(stdout);
  open_for_person(page);
  return true;
}

}  // namespace watchdog::monitor
