#include "cli/replay_summary.h"

#include "terminal/output.h"
#include "text/figures.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

void write(JsonWriter& out, const char* name, const std::optional<ReplayFinding>& finding) {
  out.key(name);
  if (!finding) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("seq", finding->seq).field("call", finding->call);
  out.field("pattern", name_of(finding->pattern)).close_object();
}

void write_limit(JsonWriter& out, const char* name, int limit,
                 const std::optional<ReplayLimitEffect>& effect) {
  if (limit == 0) return;
  out.key(name).open_object().field("limit", limit).field("ends", effect.has_value());
  if (effect) {
    out.field("call", effect->call).key("beforeEndMs");
    effect->before ? out.value(std::int64_t{effect->before->count()}) : out.value(nullptr);
  }
  out.close_object();
}

/// Returns a sentence about the cost of a limit.
std::string limit_sentence(const ReplaySummary& summary, const std::string& limit,
                           const std::optional<ReplayLimitEffect>& effect) {
  if (!effect) return "A limit of " + limit + " would not have ended this run.";
  const auto end = summary.outcome == "completed" ? "it completed"
                   : summary.outcome == "failed"  ? "it failed"
                                                  : "its last event";
  return "A limit of " + limit + " would have ended this run at call " +
         std::to_string(effect->call) + " of " + std::to_string(summary.calls) +
         (effect->before ? ", " + span_of(*effect->before) + " before " + end : "") + ".";
}

}  // namespace

std::string json_of(const ReplaySummary& summary, const ReplayLimits& limits) {
  JsonWriter out;
  out.open_object().field("trace", summary.trace).field("session", summary.session);
  out.field("format", summary.format);
  out.field("partial", summary.is_partial).field("unreadableLines", summary.unread);
  out.field("events", summary.events).field("calls", summary.calls).field("steps", summary.steps);
  out.key("outcome");
  summary.outcome.empty() ? out.value(nullptr) : out.value(summary.outcome);
  out.field("health", name_of(summary.health));
  write(out, "suspect", summary.suspect);
  write(out, "stuck", summary.stuck);
  out.key("conclusions").open_array();
  for (const auto& one : summary.conclusions) {
    out.open_object().field("seq", one.seq).field("call", one.call).key("afterMs");
    one.after ? out.value(std::int64_t{one.after->count()}) : out.value(nullptr);
    out.field("health", name_of(one.health)).field("pattern", name_of(one.pattern));
    out.field("reason", one.reason).close_object();
  }
  out.close_array();
  write_limit(out, "limitSeconds", limits.seconds, summary.by_seconds);
  write_limit(out, "limitSteps", limits.steps, summary.by_steps);
  out.close_object();
  return out.finish();
}

std::string note_of(const ReplaySummary& summary) {
  std::string note = summary.is_partial ? "partial" : "";
  // Some programs do not record calls, and then nothing can be found in them.
  if (summary.calls == 0) note += (note.empty() ? "" : ", ") + std::string("no tool calls in it");
  return note.empty() ? note : " (" + note + ")";
}

void print_details(const ReplaySummary& summary, const ReplayLimits& limits) {
  constexpr std::size_t shown_max = 20;
  print_line("\n" + terminal_line(summary.session) + " (" + summary.format + ")" +
             note_of(summary));
  std::size_t shown = 0;
  for (const auto& one : summary.conclusions) {
    if (++shown > shown_max) {
      print_line("  … " + std::to_string(summary.conclusions.size() - shown_max) +
                 " more changes; --json has all");
      break;
    }
    print_line("  " + (one.after ? "after " + span_of(*one.after) + ", " : std::string()) +
               "call " + std::to_string(one.call) + ": " + std::string(name_of(one.health)) +
               (one.reason.empty() ? "" : " – " + terminal_line(one.reason)));
  }
  if (limits.seconds > 0) {
    const auto limit = std::to_string(limits.seconds) + " s";
    print_line("  " + (summary.begins_ms
                           ? limit_sentence(summary, limit, summary.by_seconds)
                           : "The run has no times, so a limit of " + limit + " says nothing."));
  }
  if (limits.steps > 0)
    print_line("  " + limit_sentence(summary, counted_as(limits.steps, "step"), summary.by_steps));
}

std::string shown(const std::optional<ReplayFinding>& finding) {
  return finding ? std::string(name_of(finding->pattern)) + " after call " +
                       std::to_string(finding->call)
                 : "–";
}

}  // namespace watchdog::monitor
