// A result that is too large loses the ends of its long texts first, and then a quarter of its
// longest lists, again and again. The innermost of large lists are cut, so the rows of a list stay
// where one row has nearly all of it.
#include "mcp/brief.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <map>
#include <vector>

#include "mcp/rpc.h"
#include "privacy/content.h"
#include "text/time_left.h"

namespace watchdog::monitor::mcp {
namespace {

std::size_t size_of(const json& value) {
  return line_of(value).size();
}

/// Cuts all texts to this many bytes. Returns whether one was longer.
bool cut_texts(json& value, std::size_t bytes_max) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (text.size() <= bytes_max) return false;
    text = std::string(first_characters(text, bytes_max / 4)) + " …";
    return true;
  }
  bool is_cut = false;
  if (value.is_structured())
    for (auto& item : value) is_cut = cut_texts(item, bytes_max) || is_cut;
  return is_cut;
}

/// A list within a result, and the name of the member that it is, or is in.
struct FoundList {
  json* list = nullptr;
  std::string name{};
  std::size_t bytes = 0;
  /// How many lists were found until its last item was seen: those after it up to here are in it.
  std::size_t end = 0;
};

/// Adds the lists of a value, each before the lists in it. Linear, but for the texts that size_of()
/// makes.
void find_lists(json& value, const std::string& name, std::vector<FoundList>& lists) {
  if (!value.is_structured() || value.empty()) return;
  const auto at = lists.size();
  if (value.is_array()) lists.push_back({&value, name, size_of(value)});
  for (auto item = value.begin(); item != value.end(); ++item)
    find_lists(*item, value.is_object() ? item.key() : name, lists);
  if (value.is_array()) lists[at].end = lists.size();
}

/// Returns the lists to cut: of those that have at least half of the largest one's bytes, the
/// innermost. So the rows of a list stay where one row has nearly all of it, and a thousand equal
/// lists are cut at once.
std::vector<FoundList> lists_to_cut(json& result) {
  std::vector<FoundList> lists;
  find_lists(result, "", lists);
  std::size_t largest = 0;
  for (const auto& found : lists) largest = std::max(largest, found.bytes);
  std::vector<FoundList> chosen;
  auto next = lists.size();  // the nearest large list after this one
  for (auto at = lists.size(); at-- > 0;) {
    if (lists[at].bytes * 2 < largest) continue;
    if (next >= lists[at].end) chosen.push_back(lists[at]);
    next = at;
  }
  return chosen;
}

json or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

/// Returns the estimate in sentences. Returns an empty text if the session has no estimate.
std::string estimate_in(const json& estimate) {
  std::string words;
  for (const auto* name : {"unfinished", "callsLeft"})
    if (const auto text = text_in(member(estimate, name), "text"); !text.empty())
      words += (words.empty() ? "" : "; ") + text;
  return words;
}

}  // namespace

std::string iso_time(WallTime at) {
  const auto ms = at.time_since_epoch().count();
  const std::time_t seconds = (ms - ((ms % 1'000) + 1'000) % 1'000) / 1'000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  std::array<char, 64> text{};
  const auto end = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 16> rest{};
  std::snprintf(rest.data(), rest.size(), ".%03dZ",
                static_cast<int>(((ms % 1'000) + 1'000) % 1'000));
  return std::string(text.data(), end) + rest.data();
}

json brief(const json& document, WallTime now) {
  json made = json::object();
  for (const auto* name :
       {"sessionId", "title", "agent", "task", "state", "attention", "health", "lifecycle",
        "currentPhase", "iteration", "waitingFor", "waitProvider", "parentSessionId"})
    made[name] = member(document, name);
  made["reason"] = or_null(with_time_left(text_in(document, "reason"), now));
  const auto since = number_in(document, "stateSince", -1);
  const auto ms = now.time_since_epoch().count();
  made["stateSeconds"] = since < 0 ? json() : json(std::max<std::int64_t>(ms - since, 0) / 1'000);
  const auto until = number_in(document, "waitUntil", -1);
  made["waitUntil"] = or_null(until < 0 ? "" : iso_time(WallTime{Millis{until}}));
  json tools = json::array();
  for (const auto& tool : member(document, "tools")) tools.push_back(member(tool, "name"));
  made["runningTools"] = std::move(tools);
  made["stateChanges"] = member(member(document, "progress"), "stateChanges");
  made["labels"] = member(document, "labels");
  made["estimate"] = or_null(estimate_in(member(document, "estimate")));
  made["lastSeq"] = member(document, "lastSeq");
  return made;
}

void bound(json& result, std::size_t bytes_max, const std::string& newest_last) {
  result["cut"] = nullptr;
  if (size_of(result) <= bytes_max) return;
  constexpr std::size_t note_bytes_max = 400;
  const auto room = bytes_max - std::min(bytes_max / 2, note_bytes_max);
  std::string note;
  if (cut_texts(result, 2'000)) note = "Long texts are cut";
  std::map<std::string, std::size_t> dropped;
  while (size_of(result) > room) {
    const auto lists = lists_to_cut(result);
    if (lists.empty()) break;
    for (const auto& found : lists) {
      auto& items = found.list->get_ref<json::array_t&>();
      const auto part = std::max<std::size_t>(items.size() / 4, 1);
      const auto begin = found.name == newest_last
                             ? items.begin()
                             : items.end() - static_cast<std::ptrdiff_t>(part);
      items.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      dropped[found.name] += part;
    }
  }
  std::size_t named = 0;
  for (const auto& [name, count] : dropped)
    if (++named <= 4)
      note += (note.empty() ? "" : ". ") + std::string(first_characters(name, 40)) + ": " +
              std::to_string(count) + " are left out";
  for (std::size_t most = 500; size_of(result) > room && most >= 8; most /= 2)
    (void)cut_texts(result, most);
  result["cut"] = note + ". Ask for less: name one session, a filter or a smaller limit";
}

}  // namespace watchdog::monitor::mcp
