// What is concluded of servers that work, slowly or not, and of servers that do not, from looks at
// them: each scenario in random variants.

#include <gtest/gtest.h>

#include <iostream>

#include "server/server_variant.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using S = ServerState;

/// Runs variants of a scenario and names which of them went wrong, with the reason: what `wrong`
/// says, empty where it is right.
void run(const char* name, void (*make)(Variant&),
         std::string (*wrong_with)(const Variant&, const Seen&)) {
  const int variants = repetitions(1'000, 50);
  int wrong = 0;
  std::int64_t looks = 0, busy = 0, quiet = 0;
  for (int at = 0; at < variants; ++at) {
    Variant v = variant(random_seed() + static_cast<unsigned>(at));
    make(v);
    const Seen watched = watch(v);
    looks += watched.looks;
    busy += watched.busy;
    quiet += watched.quiet;
    const std::string why = wrong_with(v, watched);
    if (why.empty()) continue;
    if (++wrong <= 5)
      ADD_FAILURE() << name << ": " << why << "\n  " << text_of(v) << "\n  " << path_of(watched);
  }
  EXPECT_EQ(wrong, 0) << name << ": of " << variants;
  std::cout << name << ": " << variants << " variants, " << looks << " looks, busy in " << busy
            << ", quiet or unknown in " << quiet << std::endl;
}

/// Slow, and nothing worse: where its process is seen it is busy all the way. The first look has
/// nothing to compare with, and the next none to be late against.
std::string slow(const Variant& v, const Seen& watched) {
  if (watched.hung > 0) return "hung: " + watched.first_hung;
  if (v.from.is_local && watched.busy + 2 < watched.looks)
    return std::to_string(watched.looks - watched.busy) + " of " + std::to_string(watched.looks) +
           " looks found it not busy";
  return {};
}

TEST(Slow, a_long_prompt_is_being_read) {
  run("long prompt", long_prompt, slow);
}

TEST(Slow, an_answer_is_written_token_by_token) {
  run("slow answer", slow_answer, slow);
}

TEST(Slow, batches_take_minutes) {
  run("slow batches", slow_batches, slow);
}

TEST(Slow, one_batch_takes_an_hour) {
  run("hour-long batches", hour_long_batches, slow);
}

TEST(Slow, it_waits_for_its_turn) {
  run("queue", queue, slow);
}

TEST(Slow, the_model_is_loaded_first) {
  run("loading", loading, slow);
}

TEST(Slow, an_old_build_says_nothing_while_it_reads) {
  run("old build", old_build, slow);
}

TEST(Slow, anything_at_all) {
  run("anything slow", anything, slow);
}

TEST(Slow, the_machine_sleeps_in_between) {
  run("machine paused", machine_paused, slow);
}

/// Where its process is seen, or that its slot alone is at work and writes, a hang is found, and
/// proved.
std::string found(const Variant& v, const Seen& watched) {
  if (watched.was_hung_before) return "hung before anything was wrong: " + watched.first_hung;
  if (watched.is_done) return {};  // the fault came too late
  const bool shows_slot = v.from.has_slots && v.fault->slots_answer && v.others == 0 &&
                          v.model.build == ServerBuild::llama_cpp;
  if (!v.from.is_local && !(shows_slot && v.fault->phase == FaultPhase::writing)) return {};
  if (!watched.hung_after) return "not found";
  const std::string& why = watched.last.why;
  const char* proof = v.from.is_local ? "its process has done nothing" : "stands still";
  if (why.find(proof) == std::string::npos) return "found for another reason";
  if (*watched.hung_after > bound_of(v))
    return "found after " + std::to_string(watched.hung_after->count() / 1'000) + " s, " +
           std::to_string(watched.hung_looks) + " looks";
  return {};
}

TEST(Hung, in_the_middle_of_an_answer) {
  run("hang while writing", hang_while_writing, found);
}

TEST(Hung, in_the_middle_of_a_prompt) {
  run("hang while reading", hang_while_reading, found);
}

/// Of a server that moved every 5 s: within 45 s, and at once where the process shows it. Clients
/// are not fed meanwhile.
TEST(Hung, a_server_that_is_stopped_as_a_whole) {
  run("stopped", stopped, [](const Variant& v, const Seen& watched) -> std::string {
    if (watched.was_hung_before) return "hung before anything was wrong: " + watched.first_hung;
    if (watched.is_done) return {};
    if (!watched.hung_after) return "not found";
    const auto seconds = std::to_string(watched.hung_after->count() / 1'000) + " s";
    if (*watched.hung_after > Millis{v.fault->shows ? 16'000 : 45'000})
      return "found after " + seconds;
    if (watched.busy_until > Millis{v.fault->shows ? 16'000 : 25'000})
      return "busy for " + std::to_string(watched.busy_until.count() / 1'000) + " s";
    const bool names_it = watched.last.why.find("kill -CONT 4711") != std::string::npos;
    if (v.fault->shows && v.model.build != ServerBuild::ollama && !names_it) return "not named";
    return {};
  });
}

TEST(Hung, a_request_that_was_swallowed) {
  run("swallowed", swallowed, [](const Variant& v, const Seen& watched) -> std::string {
    if (watched.was_hung_before) return "hung before anything was wrong";
    if (!v.from.is_local || !v.from.has_slots) return {};
    if (!watched.hung_after) return "not found";
    if (watched.last.why.find("swallowed") == std::string::npos) return "not named";
    return {};
  });
}

TEST(Hung, never_where_the_process_computes_and_nothing_else_reports) {
  run("livelock", livelock, [](const Variant&, const Seen& watched) -> std::string {
    if (watched.hung > 0) return "hung: " + watched.first_hung;
    if (!watched.is_done && watched.last.evidence.state != S::working) return "not working";
    return {};
  });
}

TEST(Hung, no_other_request_when_one_slot_stalls) {
  run("stalled slot", stalled_slot, [](const Variant&, const Seen& watched) -> std::string {
    if (watched.was_hung_before) return "hung before anything was wrong: " + watched.first_hung;
    if (watched.first_hung.starts_with("another")) return watched.first_hung;
    return {};
  });
}

/// From afar a request that is lost looks like one that was swallowed.
std::string lost(const Variant& v, const Seen& watched, S state, bool is_seen_from_afar) {
  const bool shows = v.from.is_local && watched.looks_before > 0;
  if (watched.hung > 0 && shows) return "hung: " + watched.first_hung;
  // Without a look at the server before its fault, a looker cannot notice the loss.
  if (watched.is_done || watched.looks_before == 0) return {};
  if (!v.from.is_local && !is_seen_from_afar) return {};
  return watched.last.evidence.state == state ? "" : "not " + std::string(name_of(state));
}

TEST(Restarted, though_the_connection_does_not_report) {
  run("restart", restart, [](const Variant& v, const Seen& watched) {
    return lost(v, watched, S::restarted, /*is_seen_from_afar=*/false);
  });
}

TEST(Gone, though_the_connection_does_not_report) {
  run("gone", gone, [](const Variant& v, const Seen& watched) {
    return lost(v, watched, S::gone, /*is_seen_from_afar=*/true);
  });
}

}  // namespace
}  // namespace watchdog::test
