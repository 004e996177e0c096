/// \file
/// Visits every text of a report or session. Each function names all members of its type, so a new
/// member does not compile before somebody decided here whether it is a text.
#pragma once

#include <concepts>
#include <type_traits>
#include <variant>

#include "watchdog/policy.h"
#include "watchdog/report.h"
#include "watchdog/session.h"

namespace watchdog {

/// `X` is `T`, or a constant one.
template <class X, class T>
concept Maybe = std::same_as<std::remove_const_t<X>, T>;

template <class Visit>
void each_text(Maybe<PolicyPatch> auto& patch, const Visit& visit) {
  [[maybe_unused]] auto& [heartbeat_interval, stuck_threshold, silence_intervals, call_idle_max,
                          concurrent_checks, usual_interval, slow_deviations, suspect_deviations,
                          slow_min, suspect_min, patterns, repeated_of_20, recovery_changes,
                          tools] = patch;
  for (auto& [name, rule] : tools) {
    visit(name);
    [[maybe_unused]] auto& [use, identity] = rule;
    for (auto& argument : identity) visit(argument);
  }
}

template <class Visit>
void each_text(Maybe<ProcessFacts> auto& process, const Visit& visit) {
  [[maybe_unused]] auto& [pid, start_ticks, boot_id, host, known_by] = process;
  visit(boot_id);
  visit(host);
}

/// Visits the texts of one alternative of a report's details.
template <class Visit, class T>
void each_text_of_detail(T& detail, const Visit& visit) {
  if constexpr (Maybe<T, PolicyPatch> || Maybe<T, ProcessFacts>) {
    each_text(detail, visit);
  } else if constexpr (Maybe<T, Heartbeats>) {
    [[maybe_unused]] auto& [count, first, last, max_gap, first_stored, iteration_first, iteration,
                            phase, source, counters, fresh, quiet] = detail;
    visit(phase);
    for (auto& [name, value] : counters) visit(name);
  } else if constexpr (Maybe<T, Outcome>) {
    [[maybe_unused]] auto& [kind, reason, error, stated, subject, by_answer] = detail;
    visit(reason);
    visit(error);
    visit(subject);
  } else if constexpr (Maybe<T, CancelRequest>) {
    [[maybe_unused]] auto& [by, reason, at, turn, call] = detail;
    visit(by);
    visit(reason);
    visit(turn);
    visit(call);
  } else if constexpr (Maybe<T, TurnFacts>) {
    [[maybe_unused]] auto& [parent, depth, reason, calls] = detail;
    visit(parent);
    visit(reason);
  } else if constexpr (Maybe<T, LimitPassed>) {
    [[maybe_unused]] auto& [name, limit, reached, enforced] = detail;
    visit(name);
  } else if constexpr (Maybe<T, ObserverGap>) {
    [[maybe_unused]] auto& [gap] = detail;
  } else if constexpr (Maybe<T, LostReports>) {
    [[maybe_unused]] auto& [count] = detail;
  } else if constexpr (Maybe<T, Opinion>) {
    [[maybe_unused]] auto& [verdict, confidence, seen, state] = detail;
  } else if constexpr (Maybe<T, Marks>) {
    [[maybe_unused]] auto& [identity, exact, informative, malformed, worded, printed, unreachable,
                            text_repeats, exit_code, waits, reads_only, promises, plan, fields,
                            shingles] = detail;
  } else if constexpr (Maybe<T, BudgetFigures>) {
    [[maybe_unused]] auto& [limits, steps, tool_calls, tokens, cost, elapsed, enforce_time,
                            pressure, axis, stage] = detail;
  } else if constexpr (Maybe<T, ToolProgress>) {
    [[maybe_unused]] auto& [elapsed, value, total, bytes, accepted] = detail;
  } else if constexpr (Maybe<T, Evidence>) {
    [[maybe_unused]] auto& [state, done, total, left] = detail;
  } else {
    static_assert(Maybe<T, std::monostate>, "name the members of the new kind of detail here");
  }
}

template <class Visit>
void each_text(Maybe<Report> auto& report, const Visit& visit) {
  [[maybe_unused]] auto& [kind, name, also, content, call_id, turn, hash, event_id, ts_ms, at,
                          deadline, expect_quiet, until, provider, digest, bytes, detail, timeout] =
      report;
  visit(name);
  visit(also);
  visit(content);
  visit(call_id);
  visit(turn);
  visit(hash);
  visit(event_id);
  visit(provider);
  std::visit([&](auto& own) { each_text_of_detail(own, visit); }, detail);
  if (timeout) {
    [[maybe_unused]] auto& [kind_of_limit, limit, elapsed, still_running] = *timeout;
  }
}

/// `parent` is an id, which is visited as well, although no secret is looked for in it.
template <class Visit>
void each_text(Maybe<SessionSpec> auto& spec, const Visit& visit) {
  [[maybe_unused]] auto& [parent, agent, task, title, labels, policy, content, process] = spec;
  visit(parent);
  visit(agent);
  visit(task);
  visit(title);
  for (auto& [key, value] : labels) {
    visit(key);
    visit(value);
  }
  each_text(policy, visit);
  if (process) each_text(*process, visit);
}

}  // namespace watchdog
