// A report joins an earlier one of the same thing that another source reported and its own source
// has not. `by` has a bit for each source. A second report from the same source is thus a new
// thing. Calls are looked for from the newest, because some servers use call ids again; results
// without an id go to calls in their order. The first report sets the event id for both. Nothing is
// dropped, so a report that the store refused is not lost. After a restart the store's newest
// events replace what the joiner knew, so the second report of one thing still finds the first.
#include "ingest/joiner.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <string_view>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "privacy/content.h"
#include "store/event_reader.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// As much of a prompt as is compared.
constexpr std::size_t prompt_bytes_max = 4'096;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// A proxy sees what is new in a request, of which the prompt is a part.
bool is_part(std::string_view one, std::string_view other) {
  if (one.empty() || other.empty()) return false;
  return one.find(other) != std::string_view::npos || other.find(one) != std::string_view::npos;
}

std::uint64_t identity_of(const Report& report) {
  const auto* marks = std::get_if<Marks>(&report.detail);
  return marks == nullptr ? 0 : marks->identity;
}

/// Returns the source that reports of this origin are compared as. Those that name their own
/// sessions and calls count as the agent. The proxy of tool servers reports calls of the agent.
constexpr ReportOrigin source_of(ReportOrigin origin) {
  switch (origin) {
    case ReportOrigin::hooks:
    case ReportOrigin::proxy:
    case ReportOrigin::otlp:
    case ReportOrigin::transcript:
    case ReportOrigin::mcp:
      return origin;
    case ReportOrigin::unknown:
    case ReportOrigin::agent:
    case ReportOrigin::run:
    case ReportOrigin::monitor:
      break;
  }
  return ReportOrigin::agent;
}

constexpr unsigned bit_of(ReportOrigin source) {
  return 1U << static_cast<unsigned>(source);
}

/// Returns the possible sources of a stored report. Some make ids of their own.
unsigned sources_of(std::string_view event_id) {
  if (event_id.starts_with("hook:")) return bit_of(ReportOrigin::hooks);
  if (event_id.starts_with("otlp:")) return bit_of(ReportOrigin::otlp);
  if (event_id.starts_with("mcp:")) return bit_of(ReportOrigin::mcp);
  return bit_of(ReportOrigin::agent) | bit_of(ReportOrigin::proxy);
}

bool is_prompt(const Report& report) {
  return report.kind == ReportKind::user_input ||
         (report.kind == ReportKind::state_change && report.name == "input");
}

bool is_begin(const Report& report) {
  return report.kind == ReportKind::start && report.name.empty();
}

/// Returns whether hooks name such a report by its turn or subagent, not by itself.
bool may_come_again(const Report& report) {
  return is_begin(report) || is_prompt(report) || report.kind == ReportKind::end ||
         report.kind == ReportKind::idle || report.kind == ReportKind::message;
}

/// Event ids of another time have this before its number.
constexpr char again = '~';

std::string_view first_id(std::string_view event_id) {
  const auto mark = event_id.rfind(again);
  const auto digits = mark == event_id.npos ? "" : event_id.substr(mark + 1);
  const bool is_number =
      !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? event_id.substr(0, mark) : event_id;
}

/// All reports of one hook have the same id, with a number after the first one's.
std::string_view id_of_event(std::string_view event_id) {
  event_id = first_id(event_id);
  const auto colon = event_id.rfind(':');
  const auto digits = colon == event_id.npos ? "" : event_id.substr(colon + 1);
  return digits.size() == 1 && digits[0] >= '1' && digits[0] <= '9' ? event_id.substr(0, colon)
                                                                    : event_id;
}

/// Returns how many times the thing had happened, of which this is an event id.
int number_in(std::string_view event_id) {
  const auto first = first_id(event_id);
  int number = 1;
  if (first.size() < event_id.size())
    std::from_chars(event_id.data() + first.size() + 1, event_id.data() + event_id.size(), number);
  return number;
}

std::string with_number(std::string_view event_id, int times) {
  return std::string(first_id(event_id)) + again + std::to_string(times);
}

}  // namespace

void Joiner::join(Batch& batch) {
  auto& joined = joined_of(batch.session);
  const auto source = source_of(batch.by);
  const auto by = bit_of(source);
  if (earlier_ && source != ReportOrigin::agent && !std::exchange(joined.is_recalled, true))
    for (const auto& event : earlier_(batch.session)) recall(joined, event);
  joined.by |= by;
  join_use(joined, batch, by);
  const bool alone = std::popcount(joined.by) == 1;
  if (alone && (source == ReportOrigin::agent || source == ReportOrigin::proxy)) return;
  const bool is_hook = source == ReportOrigin::hooks;
  for (auto& report : batch.reports) {
    const auto own = report.event_id.empty() ? 0 : digest_of(report.event_id);
    const auto known =
        std::ranges::find(joined.renamed, own, &std::pair<std::uint64_t, std::string>::first);
    if (is_hook || source == ReportOrigin::transcript) name_time(joined, report, is_hook);
    if (!is_hook && own != 0 && known != joined.renamed.end()) {
      report.event_id = known->second;
      continue;
    }
    join_one(joined, report, by);
    if (!is_hook && own != 0 && digest_of(report.event_id) != own) {
      if (joined.renamed.size() == renamed_max) joined.renamed.pop_front();
      joined.renamed.emplace_back(own, report.event_id);
    }
    note(joined, report, is_hook ? own : 0);
    // Reports of the same moment come before anything else begins.
    if (is_begin(report) || report.kind == ReportKind::tool_call || is_prompt(report))
      joined.idle = joined.compaction = joined.over = {};
  }
}

/// Gives a report the id of its event. A report that comes again at once is the same event. After
/// anything else it is a new one, if its source sends each event once: `may_be_new`.
void Joiner::name_time(SessionReports& joined, Report& report, bool may_be_new) {
  if (report.event_id.empty() || !may_come_again(report)) return;
  const auto named = std::ranges::find(joined.named, digest_of(report.event_id), &Named::id);
  if (named == joined.named.end()) return;
  if (may_be_new && named->news != joined.news)
    named->event_id = with_number(report.event_id, ++named->times);
  report.event_id = named->event_id;
}

/// Remembers a report. `own`: the digest of the id by which hooks named it, or 0.
void Joiner::note(SessionReports& joined, const Report& report, std::uint64_t own) {
  if (report.kind == ReportKind::heartbeat || report.kind == ReportKind::budget) return;
  if (report.kind == ReportKind::start && !is_begin(report)) return;
  const auto event = report.event_id.empty() ? 0 : digest_of(id_of_event(report.event_id));
  if (event == 0 || event != joined.newest) ++joined.news;
  joined.newest = event;
  if (own == 0 || !may_come_again(report)) return;
  auto named = std::ranges::find(joined.named, own, &Named::id);
  if (named == joined.named.end()) {
    if (joined.named.size() == named_max) joined.named.pop_front();
    named = joined.named.insert(named, {.id = own});
  }
  named->news = joined.news;
  named->event_id = report.event_id;
}

Joiner::Earlier Joiner::earlier_in(Store& store) {
  return [&store](const std::string& session) -> std::vector<Event> {
    const auto row = store.reader().session(session);
    if (!row) return {};
    auto events = EventReader(store.reader()).latest(row->key, recalled_max);
    return events ? std::move(*events) : std::vector<Event>{};
  };
}

/// A report without an event id cannot be joined: the store keeps what has another id or none.
void Joiner::recall(SessionReports& joined, const Event& event) {
  const auto& report = event.report;
  if (report.event_id.empty()) return;
  const Reported reported{.by = sources_of(report.event_id), .event_id = report.event_id};
  joined.by |= reported.by;
  const auto first = first_id(report.event_id);
  const bool is_hook = first.starts_with("hook:");
  note(joined, report, is_hook ? digest_of(first) : 0);
  if (is_hook && may_come_again(report))
    std::ranges::find(joined.named, digest_of(first), &Named::id)->times =
        number_in(report.event_id);
  if (report.kind == ReportKind::tool_call) {
    auto& call = added(joined);
    call.id = report.call_id;
    call.tool = report.name;
    call.arguments = identity_of(report);
    call.times = number_in(report.event_id);
    call.reported = reported;
  } else if (report.kind == ReportKind::tool_result || report.kind == ReportKind::error) {
    if (report.call_id.empty()) return;
    const auto found = std::find_if(
        joined.calls.rbegin(), joined.calls.rend(),
        [&](const Call& call) { return call.id == report.call_id && call.answered.by == 0; });
    auto& call = found != joined.calls.rend() ? *found : added(joined);
    call.id = report.call_id;
    if (call.tool.empty()) call.tool = report.name;
    call.answered = reported;
    // The next call of this id is another one. Telemetry reports a call when it has its result.
    call.reported.by |= ~bit_of(ReportOrigin::otlp);
  } else if (is_prompt(report)) {
    if (joined.prompts.size() == prompts_max) joined.prompts.erase(joined.prompts.begin());
    joined.prompts.push_back(
        {.reported = reported,
         .text = std::string(first_characters(trimmed(report.content), prompt_bytes_max))});
  }
}

void Joiner::join_use(SessionReports& joined, Batch& batch, unsigned by) {
  const auto is_use = [](const Report& report) { return report.kind == ReportKind::budget; };
  if (std::ranges::none_of(batch.reports, is_use)) return;
  if (joined.used_by == 0 || joined.used_by == by || ++joined.other_uses > other_uses_max) {
    joined.used_by = by;
    joined.other_uses = 0;
    return;
  }
  std::erase_if(batch.reports, is_use);
}

void Joiner::join_one(SessionReports& joined, Report& report, unsigned by) {
  switch (report.kind) {
    case ReportKind::tool_call:
      return join_call(joined, report, by);
    case ReportKind::tool_result:
    case ReportKind::error:
      return join_result(joined, report, by);
    case ReportKind::message:
      if (report.name == "assistant") join_answer(joined, report, by);
      return;
    case ReportKind::idle:
      return join_once(joined.idle, report, by);
    case ReportKind::compaction:
      return join_once(joined.compaction, report, by);
    case ReportKind::end:
      // Only these two report how subagents end.
      if (by == bit_of(ReportOrigin::hooks) || by == bit_of(ReportOrigin::transcript))
        join_once(joined.over, report, by);
      return;
    default:
      if (is_prompt(report)) join_prompt(joined, report, by);
  }
}

Joiner::SessionReports& Joiner::joined_of(const std::string& session) {
  if (const auto found = joined_.find(session); found != joined_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
    return found->second;
  }
  if (joined_.size() == sessions_max) {
    joined_.erase(by_use_.back());
    by_use_.pop_back();
  }
  by_use_.push_front(session);
  auto& joined = joined_[session];
  joined.place = by_use_.begin();
  return joined;
}

void Joiner::name(Reported& reported, Report& report, unsigned by) {
  if (reported.by != 0) {
    report.event_id = reported.event_id;
  } else {
    if (report.event_id.empty()) report.event_id = new_uuid7(system_clock().wall());
    reported.event_id = report.event_id;
  }
  reported.by |= by;
}

void Joiner::join_once(Reported& reported, Report& report, unsigned by) {
  if ((reported.by & by) != 0) reported = {};
  name(reported, report, by);
}

void Joiner::join_call(SessionReports& joined, Report& report, unsigned by) {
  mark(report);
  const auto arguments = identity_of(report);
  // The newest: some servers of models give the same ids again and again.
  const auto found =
      std::find_if(joined.calls.rbegin(), joined.calls.rend(), [&](const Call& call) {
        if (!call.id.empty() && !report.call_id.empty()) return call.id == report.call_id;
        return arguments != 0 && call.other_id.empty() && call.arguments == arguments &&
               (call.reported.by & by) == 0;
      });
  if (found != joined.calls.rend() && (found->reported.by & by) == 0) {
    name(found->reported, report, by);
    found->other_id = report.call_id;
    found->other_tool = report.name;
    return;
  }
  // Some agents use ids of calls again. A hook reports a call once, so after its result, or with
  // other arguments, the id is that of another call.
  const bool is_used = found != joined.calls.rend() && by == bit_of(ReportOrigin::hooks);
  if (is_used && (found->answered.by & by) == 0 && found->arguments == arguments) {
    report.event_id = found->reported.event_id;
    return;
  }
  const int times = is_used ? found->times + 1 : 1;
  auto& call = added(joined);
  call.id = report.call_id;
  call.tool = report.name;
  call.arguments = arguments;
  call.times = times;
  if (times > 1 && !report.event_id.empty()) report.event_id = with_number(report.event_id, times);
  name(call.reported, report, by);
}

Joiner::Call& Joiner::added(SessionReports& joined) {
  if (joined.calls.size() == calls_max) joined.calls.erase(joined.calls.begin());
  return joined.calls.emplace_back();
}

void Joiner::join_result(SessionReports& joined, Report& report, unsigned by) {
  const auto of = [&](const Call& call) {
    if ((call.answered.by & by) != 0) return false;
    const auto& id = call.id.empty() ? call.other_id : call.id;
    if (!id.empty() && !report.call_id.empty()) return id == report.call_id;
    const bool is_named = call.tool == report.name || call.other_tool == report.name;
    return (call.reported.by & by) != 0 && is_named;
  };
  Call* call = nullptr;
  if (report.call_id.empty()) {  // calls without ids are answered in their order
    const auto found = std::ranges::find_if(joined.calls, of);
    if (found != joined.calls.end()) call = &*found;
  } else {
    const auto found = std::find_if(joined.calls.rbegin(), joined.calls.rend(), of);
    if (found != joined.calls.rend()) call = &*found;
  }
  if (call == nullptr && !report.call_id.empty() && by == bit_of(ReportOrigin::hooks)) {
    const auto answered =
        std::find_if(joined.calls.rbegin(), joined.calls.rend(), [&](const Call& one) {
          return (one.id == report.call_id || one.other_id == report.call_id) &&
                 (one.answered.by & by) != 0;
        });
    if (answered != joined.calls.rend()) {  // the same result again
      report.event_id = answered->answered.event_id;
      return;
    }
  }
  if (call == nullptr) {
    // The call was reported before the monitor started, or long ago. Other origins report its
    // result, too.
    if (report.call_id.empty()) return;
    call = &added(joined);
    call->id = report.call_id;
    call->tool = report.name;
  }
  // As its call is stored, so the two belong together.
  if (report.call_id.empty()) report.call_id = call->id;
  if (report.call_id.empty()) report.name = call->tool;
  if (call->times > 1 && !report.event_id.empty())
    report.event_id = with_number(report.event_id, call->times);
  name(call->answered, report, by);
  report.call_id = call->id;
}

void Joiner::join_prompt(SessionReports& joined, Report& report, unsigned by) {
  constexpr auto otlp = bit_of(ReportOrigin::otlp);
  constexpr auto all_are_told = bit_of(ReportOrigin::hooks) | bit_of(ReportOrigin::transcript);
  const auto text = trimmed(report.content);
  const auto is_same = [&](const Prompt& prompt) {
    if ((prompt.reported.by & by) != 0) return false;
    if (&prompt != &joined.prompts.back() && (by & all_are_told) != 0)
      return prompt.text == first_characters(text, prompt_bytes_max);
    if (is_part(text, prompt.text)) return true;
    // Telemetry reports prompts without their texts unless a person allows them.
    return (text.empty() && by == otlp) || (prompt.text.empty() && prompt.reported.by == otlp);
  };
  // Telemetry and transcripts come late: another prompt may have come meanwhile.
  const auto end = (by & (otlp | all_are_told)) != 0 || joined.prompts.empty()
                       ? joined.prompts.rend()
                       : std::next(joined.prompts.rbegin());
  const auto found = std::find_if(joined.prompts.rbegin(), end, is_same);
  if (found != end) return name(found->reported, report, by);
  if (joined.prompts.size() == prompts_max) joined.prompts.erase(joined.prompts.begin());
  auto& prompt = joined.prompts.emplace_back();
  prompt.text = first_characters(text, prompt_bytes_max);
  name(prompt.reported, report, by);
}

void Joiner::join_answer(SessionReports& joined, Report& report, unsigned by) {
  const auto digest = digest_of(trimmed(report.content));
  const bool same = (joined.answer.by & by) == 0 && digest == joined.answer_digest;
  if (!same) joined.answer = {};
  joined.answer_digest = digest;
  name(joined.answer, report, by);
}

}  // namespace watchdog::monitor
