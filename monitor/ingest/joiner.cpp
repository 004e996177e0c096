// A report joins an earlier one of the same thing that another source told and its own source has
// not. `by` has a bit for each source. A second report from the same source is thus a new thing.
// Calls are looked for from the newest, because some servers use call ids again; results without an
// id go to calls in their order. The first report sets the event id for both. Nothing is dropped,
// so a report that the store refused is not lost. After a restart the store's newest events replace
// what the joiner knew, so the second report of one thing still finds the first.
#include "ingest/joiner.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "privacy/content.h"
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
/// sessions and calls count as the agent.
constexpr ReportOrigin source_of(ReportOrigin origin) {
  switch (origin) {
    case ReportOrigin::hooks:
    case ReportOrigin::proxy:
    case ReportOrigin::otlp:
    case ReportOrigin::transcript:
      return origin;
    case ReportOrigin::unknown:
    case ReportOrigin::agent:
    case ReportOrigin::run:
    case ReportOrigin::mcp:
    case ReportOrigin::monitor:
      break;
  }
  return ReportOrigin::agent;
}

constexpr unsigned bit_of(ReportOrigin source) {
  return 1U << static_cast<unsigned>(source);
}

/// Returns the possible sources of a stored report. Hooks and OpenTelemetry make ids of their own.
unsigned tellers_of(std::string_view event_id) {
  if (event_id.starts_with("hook:")) return bit_of(ReportOrigin::hooks);
  if (event_id.starts_with("otlp:")) return bit_of(ReportOrigin::otlp);
  return bit_of(ReportOrigin::agent) | bit_of(ReportOrigin::proxy);
}

bool is_prompt(const Report& report) {
  return report.kind == ReportKind::user_input ||
         (report.kind == ReportKind::state_change && report.name == "input");
}

}  // namespace

void Joiner::join(Batch& batch) {
  auto& talk = talk_of(batch.session);
  const auto source = source_of(batch.by);
  const auto by = bit_of(source);
  if (earlier_ && source != ReportOrigin::agent && !std::exchange(talk.is_recalled, true))
    for (const auto& event : earlier_(batch.session)) recall(talk, event);
  talk.by |= by;
  join_use(talk, batch, by);
  const bool alone = std::popcount(talk.by) == 1;
  if (alone && (source == ReportOrigin::agent || source == ReportOrigin::proxy)) return;
  for (auto& report : batch.reports) {
    const auto own = report.event_id.empty() ? 0 : digest_of(report.event_id);
    const auto known =
        std::ranges::find(talk.renamed, own, &std::pair<std::uint64_t, std::string>::first);
    if (own != 0 && known != talk.renamed.end()) {
      report.event_id = known->second;
      continue;
    }
    join_one(talk, report, by);
    if (own != 0 && digest_of(report.event_id) != own) {
      if (talk.renamed.size() == renamed_max) talk.renamed.pop_front();
      talk.renamed.emplace_back(own, report.event_id);
    }
    // Reports of the same moment come before anything else begins.
    const bool begins = report.kind == ReportKind::start && report.name.empty();
    if (begins || report.kind == ReportKind::tool_call || is_prompt(report))
      talk.idle = talk.compaction = {};
  }
}

Joiner::Earlier Joiner::earlier_in(Store& store) {
  return [&store](const std::string& session) -> std::vector<Event> {
    const auto row = store.reader().session(session);
    if (!row) return {};
    auto events = store.reader().latest(row->key, recalled_max);
    return events ? std::move(*events) : std::vector<Event>{};
  };
}

/// A report without an event id cannot be joined: the store keeps what has another id or none.
void Joiner::recall(Talk& talk, const Event& event) {
  const auto& report = event.report;
  if (report.event_id.empty()) return;
  const Told told{.by = tellers_of(report.event_id), .event_id = report.event_id};
  talk.by |= told.by;
  if (report.kind == ReportKind::tool_call) {
    auto& call = added(talk);
    call.id = report.call_id;
    call.tool = report.name;
    call.arguments = identity_of(report);
    call.told = told;
  } else if (report.kind == ReportKind::tool_result || report.kind == ReportKind::error) {
    if (report.call_id.empty()) return;
    const auto found = std::find_if(talk.calls.rbegin(), talk.calls.rend(), [&](const Call& call) {
      return call.id == report.call_id && call.answered.by == 0;
    });
    auto& call = found != talk.calls.rend() ? *found : added(talk);
    call.id = report.call_id;
    if (call.tool.empty()) call.tool = report.name;
    call.answered = told;
    // The next call of this id is another one. Telemetry reports a call when it has its result.
    call.told.by |= ~bit_of(ReportOrigin::otlp);
  } else if (is_prompt(report)) {
    if (talk.prompts.size() == prompts_max) talk.prompts.erase(talk.prompts.begin());
    talk.prompts.push_back(
        {.told = told,
         .text = std::string(first_characters(trimmed(report.content), prompt_bytes_max))});
  }
}

void Joiner::join_use(Talk& talk, Batch& batch, unsigned by) {
  const auto is_use = [](const Report& report) { return report.kind == ReportKind::budget; };
  if (std::ranges::none_of(batch.reports, is_use)) return;
  if (talk.used_by == 0 || talk.used_by == by || ++talk.other_uses > other_uses_max) {
    talk.used_by = by;
    talk.other_uses = 0;
    return;
  }
  std::erase_if(batch.reports, is_use);
}

void Joiner::join_one(Talk& talk, Report& report, unsigned by) {
  switch (report.kind) {
    case ReportKind::tool_call:
      return join_call(talk, report, by);
    case ReportKind::tool_result:
    case ReportKind::error:
      return join_result(talk, report, by);
    case ReportKind::message:
      if (report.name == "assistant") join_answer(talk, report, by);
      return;
    case ReportKind::idle:
      return join_once(talk.idle, report, by);
    case ReportKind::compaction:
      return join_once(talk.compaction, report, by);
    default:
      if (is_prompt(report)) join_prompt(talk, report, by);
  }
}

Joiner::Talk& Joiner::talk_of(const std::string& session) {
  if (const auto found = talks_.find(session); found != talks_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
    return found->second;
  }
  if (talks_.size() == sessions_max) {
    talks_.erase(by_use_.back());
    by_use_.pop_back();
  }
  by_use_.push_front(session);
  auto& talk = talks_[session];
  talk.place = by_use_.begin();
  return talk;
}

void Joiner::name(Told& told, Report& report, unsigned by) {
  if (told.by != 0) {
    report.event_id = told.event_id;
  } else {
    if (report.event_id.empty()) report.event_id = new_uuid7(system_clock().wall());
    told.event_id = report.event_id;
  }
  told.by |= by;
}

void Joiner::join_once(Told& told, Report& report, unsigned by) {
  if ((told.by & by) != 0) told = {};
  name(told, report, by);
}

void Joiner::join_call(Talk& talk, Report& report, unsigned by) {
  mark(report);
  const auto arguments = identity_of(report);
  // The newest: some servers of models give the same ids again and again.
  const auto found = std::find_if(talk.calls.rbegin(), talk.calls.rend(), [&](const Call& call) {
    if (!call.id.empty() && !report.call_id.empty()) return call.id == report.call_id;
    return arguments != 0 && call.other_id.empty() && call.arguments == arguments &&
           (call.told.by & by) == 0;
  });
  if (found != talk.calls.rend() && (found->told.by & by) == 0) {
    name(found->told, report, by);
    found->other_id = report.call_id;
    return;
  }
  auto& call = added(talk);
  call.id = report.call_id;
  call.tool = report.name;
  call.arguments = arguments;
  name(call.told, report, by);
}

Joiner::Call& Joiner::added(Talk& talk) {
  if (talk.calls.size() == calls_max) talk.calls.erase(talk.calls.begin());
  return talk.calls.emplace_back();
}

void Joiner::join_result(Talk& talk, Report& report, unsigned by) {
  const auto of = [&](const Call& call) {
    if ((call.answered.by & by) != 0) return false;
    const auto& id = call.id.empty() ? call.other_id : call.id;
    if (!id.empty() && !report.call_id.empty()) return id == report.call_id;
    return (call.told.by & by) != 0 && call.tool == report.name;
  };
  Call* call = nullptr;
  if (report.call_id.empty()) {  // calls without ids are answered in their order
    const auto found = std::ranges::find_if(talk.calls, of);
    if (found != talk.calls.end()) call = &*found;
  } else {
    const auto found = std::find_if(talk.calls.rbegin(), talk.calls.rend(), of);
    if (found != talk.calls.rend()) call = &*found;
  }
  if (call == nullptr) {
    // The call was reported before the monitor started, or long ago. Other origins report its
    // result, too.
    if (report.call_id.empty()) return;
    call = &added(talk);
    call->id = report.call_id;
    call->tool = report.name;
  }
  name(call->answered, report, by);
  report.call_id = call->id;
}

void Joiner::join_prompt(Talk& talk, Report& report, unsigned by) {
  constexpr auto otlp = bit_of(ReportOrigin::otlp);
  const auto text = trimmed(report.content);
  const auto is_same = [&](const Prompt& prompt) {
    if ((prompt.told.by & by) != 0) return false;
    if (is_part(text, prompt.text)) return true;
    // Telemetry reports prompts without their texts unless a person allows them.
    return (text.empty() && by == otlp) || (prompt.text.empty() && prompt.told.by == otlp);
  };
  // Telemetry comes late: another prompt may have come meanwhile.
  const auto end =
      by == otlp || talk.prompts.empty() ? talk.prompts.rend() : std::next(talk.prompts.rbegin());
  const auto found = std::find_if(talk.prompts.rbegin(), end, is_same);
  if (found != end) return name(found->told, report, by);
  if (talk.prompts.size() == prompts_max) talk.prompts.erase(talk.prompts.begin());
  auto& prompt = talk.prompts.emplace_back();
  prompt.text = first_characters(text, prompt_bytes_max);
  name(prompt.told, report, by);
}

void Joiner::join_answer(Talk& talk, Report& report, unsigned by) {
  const auto digest = digest_of(trimmed(report.content));
  const bool same = (talk.answer.by & by) == 0 && digest == talk.answer_digest;
  if (!same) talk.answer = {};
  talk.answer_digest = digest;
  name(talk.answer, report, by);
}

}  // namespace watchdog::monitor
