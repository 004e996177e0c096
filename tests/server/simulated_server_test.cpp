// The server that the other tests believe in.

#include "support/simulated_server.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace watchdog::test {
namespace {

constexpr Instant at(double seconds) {
  return Instant{Millis{static_cast<std::int64_t>(seconds * 1'000)}};
}

int count(const std::vector<Piece>& pieces, PieceKind kind) {
  return static_cast<int>(std::ranges::count(pieces, kind, &Piece::kind));
}

std::optional<ServerView> asked(SimulatedServer& server, Question question) {
  return server.answer(server.ask(question));
}

TEST(SimulatedServer, a_prompt_is_read_in_batches_and_then_answered_token_by_token) {
  SimulatedServer server({.batch = 2'000, .read_rate = 20, .write_rate = 2});
  const auto id =
      server.submit({.prompt = 5'000, .cached = 1'000, .answer = 4, .return_progress = true});
  auto pieces = server.received(id);
  ASSERT_EQ(pieces.size(), 2U) << "the head comes when the slot starts";
  EXPECT_EQ(pieces[0].kind, PieceKind::head);
  EXPECT_EQ(pieces[1].read, 1'000);
  server.advance(at(99));
  EXPECT_EQ(count(server.received(id), PieceKind::ping), 3);
  EXPECT_EQ(asked(server, Question::slots)->slots[0].read, 0);
  server.advance(at(101));
  pieces = server.received(id);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].read, 3'000);
  EXPECT_EQ(asked(server, Question::slots)->slots[0].read, 2'000);
  server.advance(at(202));
  pieces = server.received(id);
  EXPECT_EQ(count(pieces, PieceKind::token), 4);
  EXPECT_EQ(pieces.back().kind, PieceKind::done);
  EXPECT_EQ(pieces.back().at, at(201.5)) << "the first token comes with the prompt's last batch";
  EXPECT_FALSE(asked(server, Question::slots)->slots[0].is_processing);
  EXPECT_EQ(asked(server, Question::slots)->slots[0].written, 4) << "the task before's";
  EXPECT_NEAR(static_cast<double>(server.process().cpu.count()), 201'500, 10);
}

TEST(SimulatedServer, an_old_build_is_silent_while_a_batch_runs) {
  SimulatedServer server({.build = ServerBuild::llama_cpp_2025, .batch = 2'000, .read_rate = 20});
  const auto id = server.submit({.prompt = 3'000, .answer = 2, .return_progress = true});
  server.advance(at(10));
  const auto question = server.ask(Question::slots);
  EXPECT_TRUE(asked(server, Question::health));
  server.advance(at(99));
  EXPECT_FALSE(server.answer(question));
  server.advance(at(101));
  const auto view = server.answer(question);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->slots[0].read, 2'000);
  EXPECT_EQ(view->prompt_total, 0) << "counted when the prompt is read whole";
  EXPECT_TRUE(server.received(id).empty()) << "no head before the first token";
  server.advance(at(149.9));
  EXPECT_TRUE(server.received(id).empty());
  server.advance(at(151));
  EXPECT_EQ(server.received(id)[0].kind, PieceKind::head);
}

TEST(SimulatedServer, a_queued_request_gets_nothing_and_appears_in_no_slot) {
  SimulatedServer server({.batch = 100, .read_rate = 10, .write_rate = 1});
  const auto first = server.submit({.prompt = 1'000, .answer = 10});
  const auto second = server.submit({.prompt = 100, .answer = 1});
  server.advance(at(100));
  EXPECT_TRUE(server.received(second).empty());
  const auto view = asked(server, Question::metrics);
  EXPECT_EQ(view->queued, 1);
  EXPECT_EQ(view->slots.size(), 1U);
  server.cancel(first);
  server.advance(at(112));
  EXPECT_EQ(server.received(second).back().kind, PieceKind::done) << "cancelled between batches";
}

TEST(SimulatedServer, a_hang_leaves_health_as_it_is) {
  for (const bool slots_answer : {false, true}) {
    SimulatedServer server({.read_rate = 1'000, .write_rate = 10});
    server.fail({.phase = FaultPhase::writing, .after = 5, .slots_answer = slots_answer});
    const auto id = server.submit({.prompt = 100, .answer = 50});
    server.advance(at(100));
    const auto cpu = server.process().cpu;
    server.advance(at(1'000));
    EXPECT_EQ(server.process().cpu, cpu);
    EXPECT_TRUE(asked(server, Question::health));
    EXPECT_EQ(asked(server, Question::slots).has_value(), slots_answer);
    const auto pieces = server.received(id);
    EXPECT_EQ(count(pieces, PieceKind::token), 5);
    EXPECT_GT(count(pieces, PieceKind::ping), 30) << "pings prove nothing";
    server.mend();
    server.advance(at(1'010));
    EXPECT_EQ(server.received(id).back().kind, PieceKind::done);
  }
}

TEST(SimulatedServer, a_process_that_is_stopped_accepts_connections_and_answers_nothing) {
  SimulatedServer server({.read_rate = 1'000, .write_rate = 10});
  server.fail({.kind = FaultKind::stop, .phase = FaultPhase::writing, .after = 5});
  const auto id = server.submit({.prompt = 100, .answer = 50});
  server.advance(at(1'000));
  EXPECT_TRUE(server.process().is_stopped);
  for (const auto question : {Question::health, Question::slots, Question::metrics})
    EXPECT_FALSE(asked(server, question));
  const auto pieces = server.received(id);
  EXPECT_EQ(count(pieces, PieceKind::token), 5);
  EXPECT_EQ(count(pieces, PieceKind::ping), 0) << "its HTTP threads are stopped as well";
  EXPECT_TRUE(server.received(server.submit({})).empty());
  server.mend();
  EXPECT_FALSE(server.process().is_stopped);
  server.advance(at(1'010));
  EXPECT_EQ(server.received(id).back().kind, PieceKind::done);
}

TEST(SimulatedServer, within_a_batch_of_112_s_come_a_head_and_pings_but_not_to_who_is_queued) {
  SimulatedServer server({.batch = 2'048, .read_rate = 18.3});
  const auto served = server.submit({.prompt = 10'800, .answer = 10, .return_progress = true});
  const auto queued = server.submit({.prompt = 100, .answer = 1});
  EXPECT_EQ(count(server.received(served), PieceKind::head), 1) << "as soon as it has a slot";
  server.advance(at(111));
  EXPECT_EQ(count(server.received(served), PieceKind::ping), 3) << "every 30 s";
  EXPECT_EQ(asked(server, Question::slots)->slots[0].read, 0);
  server.advance(at(113));
  EXPECT_EQ(asked(server, Question::slots)->slots[0].read, 2'048);
  server.advance(at(589));
  EXPECT_EQ(count(server.received(served), PieceKind::token), 0);
  EXPECT_TRUE(server.received(queued).empty());
  server.advance(at(591));
  EXPECT_EQ(count(server.received(served), PieceKind::token), 10) << "after a prompt of 590 s";
}

TEST(SimulatedServer, a_request_may_be_swallowed) {
  SimulatedServer server({});
  server.fail({.kind = FaultKind::swallow, .cpu = 0.23});
  const auto lost = server.submit({});
  const auto served = server.submit({});
  server.advance(at(60));
  EXPECT_TRUE(server.received(lost).empty());
  EXPECT_EQ(server.received(served).back().kind, PieceKind::done);
  const auto view = asked(server, Question::slots);
  EXPECT_FALSE(view->slots[0].is_processing);
  EXPECT_EQ(view->queued, 0);
  EXPECT_GT(server.process().cpu.count(), 12'000);
}

TEST(SimulatedServer, a_restart_loses_connections_and_counters) {
  SimulatedServer server({.loading = Millis{30'000}});
  EXPECT_EQ(server.received(server.submit({}))[0].status, 503);
  server.advance(at(31));
  server.fail({.kind = FaultKind::restart, .at = at(40), .lasts = Millis{5'000}});
  const auto id = server.submit({.answer = 100'000});
  const auto before = asked(server, Question::health)->started;
  server.advance(at(41));
  EXPECT_EQ(server.received(id).back().kind, PieceKind::lost);
  EXPECT_TRUE(asked(server, Question::health)->is_refused);
  EXPECT_EQ(server.received(server.submit({}))[0].kind, PieceKind::refused);
  server.advance(at(46));
  EXPECT_TRUE(asked(server, Question::health)->is_loading);
  EXPECT_GT(asked(server, Question::health)->started, before);
  server.advance(at(76));
  EXPECT_FALSE(asked(server, Question::health)->is_loading);
  EXPECT_EQ(asked(server, Question::metrics)->decodes, 0);
}

TEST(SimulatedServer, a_question_about_slots_wakes_a_sleeping_model) {
  SimulatedServer server({.loading = Millis{20'000}, .sleep_after = Millis{60'000}});
  server.advance(at(100));
  EXPECT_TRUE(asked(server, Question::health)->is_sleeping);
  EXPECT_TRUE(asked(server, Question::metrics)->is_sleeping);
  server.advance(at(200));
  const auto question = server.ask(Question::slots);
  EXPECT_FALSE(server.answer(question));
  server.advance(at(221));
  EXPECT_TRUE(server.answer(question));
  EXPECT_FALSE(asked(server, Question::health)->is_sleeping);
}

TEST(SimulatedServer, ollama_loads_with_the_first_request_and_is_silent_until_a_token) {
  SimulatedServer server(
      {.build = ServerBuild::ollama, .read_rate = 10, .loading = Millis{30'000}});
  EXPECT_FALSE(server.process().is_there);
  const auto id = server.submit({.prompt = 300, .return_progress = true});
  server.advance(at(15));
  EXPECT_TRUE(server.process().is_there);
  const auto half = server.process();
  server.advance(at(29));
  EXPECT_GT(server.process().io_bytes, half.io_bytes);
  server.advance(at(59));
  EXPECT_TRUE(server.received(id).empty());
  server.advance(at(61));
  EXPECT_EQ(server.received(id)[0].kind, PieceKind::head);
}

TEST(SimulatedServer, other_faults_end_what_they_hit) {
  const auto last = [](SimulatedFault fault) {
    SimulatedServer server({.slots = 2});
    server.fail(fault);
    const auto id = server.submit({.answer = 100});
    const auto other = server.submit({.answer = 5});
    server.advance(at(60));
    EXPECT_EQ(server.received(other).back().kind, PieceKind::done);
    return server.received(id).back();
  };
  EXPECT_EQ(last({.kind = FaultKind::truncate, .phase = FaultPhase::writing, .after = 20}).kind,
            PieceKind::cut);
  const auto error =
      last({.kind = FaultKind::stream_error, .phase = FaultPhase::writing, .after = 20});
  EXPECT_EQ(error.kind, PieceKind::error);
  EXPECT_EQ(error.message, "Compute error.");
  const auto stalled = last(
      {.kind = FaultKind::stall_slot, .phase = FaultPhase::writing, .after = 20, .request = 1});
  EXPECT_EQ(stalled.written, 20);
  SimulatedServer small({.context = 1'000});
  EXPECT_EQ(small.received(small.submit({.prompt = 2'000}))[0].status, 400);
}

TEST(SimulatedServer, a_pause_of_the_machine_moves_everything) {
  SimulatedServer server({.read_rate = 10});
  server.fail({.kind = FaultKind::pause, .at = at(5), .lasts = Millis{1'000'000}});
  const auto id = server.submit({.prompt = 100, .answer = 1});
  server.advance(at(1'009));
  EXPECT_EQ(count(server.received(id), PieceKind::ping), 0);
  EXPECT_LT(server.process().cpu.count(), 10'000);
  server.advance(at(1'011));
  EXPECT_EQ(server.received(id).back().kind, PieceKind::done);
}

}  // namespace
}  // namespace watchdog::test
