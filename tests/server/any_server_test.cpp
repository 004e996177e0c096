// The conclusions about a model's server hold whatever it does, and whatever its pace is.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "server/server_evidence.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using S = ServerState;

/// Looks of a server that does anything, for a few requests.
class Anything {
 public:
  explicit Anything(unsigned seed) : random_(seed) {
    sample_.at = Instant{Millis{1'000}};
    const auto requests = static_cast<RequestId>(pick(1, 4));
    for (RequestId id = 1; id <= requests; ++id)
      open_[id] = {.since = sample_.at + Millis{static_cast<std::int64_t>(id)}};
  }
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  std::optional<std::int64_t> maybe() {
    return pick(0, 2) == 0 ? std::nullopt : std::optional<std::int64_t>(pick(0, 3));
  }
  void step() {
    sample_.at += Millis{pick(1, 4'000)};
    sample_.reachable = static_cast<Asked>(pick(0, 4));
    sample_.slots = static_cast<Asked>(pick(0, 4));
    sample_.metrics = static_cast<Asked>(pick(0, 4));
    sample_.is_loading = pick(0, 9) == 0;
    sample_.is_sleeping = pick(0, 9) == 0;
    sample_.slot.clear();
    for (int id = pick(0, 3); id > 0; --id)
      sample_.slot.push_back({.id = id,
                              .is_processing = pick(0, 1) == 1,
                              .task = maybe(),
                              .prompt_read = maybe(),
                              .written = maybe()});
    for (auto field : {&ServerSample::decodes, &ServerSample::running, &ServerSample::queued})
      sample_.*field = maybe();
    for (auto& [id, request] : open_) {
      if (pick(0, 9) == 0) ++request.pieces;
      if (pick(0, 9) == 0) ++request.prompt_read;
    }
  }
  std::mt19937 random_;
  ServerSample sample_;
  std::map<RequestId, RequestSample> open_;
};

TEST(AnyServer, movement_within_the_limits_is_never_hung) {
  for (int round = 0; round < test::repetitions(1'000); ++round) {
    Anything any(test::random_seed() + static_cast<unsigned>(round));
    ServerWatch watch;
    int silent = 0;
    const int silent_max = any.pick(0, 7);
    for (int i = 0; i < 300; ++i) {
      any.step();
      any.sample_.cpu = Millis{0};
      if (++silent >= silent_max) {
        silent = 0;
        for (auto& [id, request] : any.open_) ++request.pieces;
      }
      for (const auto& finding : watch.look(any.sample_, any.open_)) {
        ASSERT_NE(finding.evidence.state, S::hung) << finding.why;
        ASSERT_FALSE(finding.why.empty());
      }
    }
  }
}

TEST(AnyServer, hung_needs_both_signs) {
  for (int round = 0; round < test::repetitions(1'000); ++round) {
    Anything any(test::random_seed() + static_cast<unsigned>(round));
    ServerWatch watch;
    const bool busy = any.pick(0, 1) == 1;  // else nothing but its streams can be seen
    any.sample_.cpu = Millis{0};
    for (int i = 0; i < 300; ++i) {
      any.step();
      if (busy) *any.sample_.cpu += Millis{5'000};
      if (!busy) any.sample_.cpu.reset();
      // Slots and totals that show nothing.
      if (any.sample_.slots == Asked::answered) any.sample_.slots = Asked::waiting;
      any.sample_.running.reset();
      for (auto& [id, request] : any.open_) request.pieces = request.prompt_read = 0;
      for (const auto& finding : watch.look(any.sample_, any.open_))
        ASSERT_NE(finding.evidence.state, S::hung) << finding.why;
    }
  }
}

TEST(AnyServer, ids_are_nothing_but_names) {
  for (int round = 0; round < test::repetitions(500); ++round) {
    Anything any(test::random_seed() + static_cast<unsigned>(round));
    ServerWatch one, other;
    const auto renamed = [](RequestId id) { return 1'000 - id * 7; };
    any.sample_.cpu = Millis{0};
    for (int i = 0; i < 200; ++i) {
      any.step();
      if (any.pick(0, 1) == 1) *any.sample_.cpu += Millis{100};
      std::map<RequestId, RequestSample> same;
      for (const auto& [id, request] : any.open_) same[renamed(id)] = request;
      std::map<RequestId, ServerFinding> found;
      for (auto& finding : other.look(any.sample_, same)) found[finding.request] = finding;
      for (const auto& finding : one.look(any.sample_, any.open_)) {
        const auto& again = found.at(renamed(finding.request));
        ASSERT_EQ(finding.evidence, again.evidence);
        ASSERT_EQ(finding.why, again.why);
      }
    }
  }
}

/// A llama.cpp server with one slot and two requests, of whatever pace, as its looker sees it.
class Simulated {
 public:
  explicit Simulated(unsigned seed) : random_(seed) {
    for (RequestId id : {1U, 2U}) {
      open_[id] = {.since = start_ + Millis{static_cast<std::int64_t>(id)}};
      auto at = id == 1 ? Millis{500} : done_at_;
      for (auto batches = pick(1, 12); batches > 0; --batches)
        steps_.push_back({at += around(batch_), id, true});
      for (auto tokens = pick(1, 60); tokens > 0; --tokens)
        steps_.push_back({at += around(token_), id, false});
      done_at_ = at;
    }
  }
  /// Nothing moves any more once a share of all steps is done.
  void hang() { frozen_at_ = steps_[steps_.size() * static_cast<unsigned>(pick(0, 90)) / 100].at; }

  /// False: all is over.
  bool step() {
    at_ += interval_;
    if (frozen_at_ > done_at_ && at_ >= done_at_) return false;
    const auto until = std::min(at_, frozen_at_);
    SlotSample slot{.is_processing = true, .task = 0, .prompt_read = 0, .written = 0};
    bool in_prompt = true, any = false;
    for (; done_ < steps_.size() && steps_[done_].at <= until; ++done_) {
      const auto& step = steps_[done_];
      auto& request = open_[step.request];
      any = true;
      if (streams_ && step.is_batch && shows_progress_) request.prompt_read += 2'048;
      if (streams_ && shows_progress_) request.prompt_tokens = 1'000'000;
      if (streams_ && !step.is_batch) request.prompt_tokens = request.prompt_read, ++request.pieces;
      step.is_batch ? ++read_[step.request] : ++written_[step.request];
    }
    const RequestId current = done_ < steps_.size() ? steps_[done_].request : 2;
    if (any) shown_moves_ = shown_ == current ? shown_moves_ + 1 : 0;
    shown_ = current;
    if (current == 2) open_.erase(1);
    in_prompt = written_[current] == 0;
    slot.task = static_cast<std::int64_t>(current);
    slot.written = written_[current];
    slot.prompt_read = slots_ == 1 ? std::nullopt : std::optional(read_[current] * 2'048);
    sample_.slot = {slot};
    sample_.slots =
        slots_ == 0 || (slots_ == 1 && (in_prompt || is_hung())) ? Asked::waiting : Asked::answered;
    if (sees_process_)
      sample_.cpu = sample_.cpu.value_or(Millis{}) + (is_hung() ? Millis{} : interval_);
    sample_.at = start_ + at_;
    interval_ = any ? Millis{2'000} : std::min(interval_ * 3 / 2, Millis{15'000});
    return true;
  }
  [[nodiscard]] bool is_hung() const { return at_ > frozen_at_ + Millis{16'000}; }
  [[nodiscard]] bool shows_hangs() const { return sees_process_ || slots_ == 2; }
  /// Where only slots show progress, a batch may take any time until one has shown its pace.
  [[nodiscard]] bool shows_this_hang() {
    return sees_process_ || (slots_ == 2 && (written_[shown_] > 0 || shown_moves_ >= 2));
  }

  ServerSample sample_;
  std::map<RequestId, RequestSample> open_;

 private:
  struct Step {
    Millis at;
    RequestId request;
    bool is_batch;
  };
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  Millis around(int usual) { return Millis{std::max(1, pick(usual / 2, usual * 2))}; }

  std::mt19937 random_;
  const Instant start_{Millis{1'000'000}};
  const int batch_ = pick(1, 4) == 1 ? pick(500, 4'000) : pick(4'000, 120'000);
  const int token_ = pick(30, 12'000);
  const bool sees_process_ = pick(0, 1) == 1;
  const int slots_ = pick(0, 2);  // never answered, of an older build, of today's
  const bool streams_ = sees_process_ || slots_ == 2 ? pick(0, 1) == 1 : true;
  const bool shows_progress_ = pick(0, 1) == 1;
  std::vector<Step> steps_;
  std::size_t done_ = 0;
  std::map<RequestId, std::int64_t> read_, written_;
  RequestId shown_ = 0;
  int shown_moves_ = 0;  // looks at which its slot moved
  Millis at_{}, done_at_{}, frozen_at_{Millis::max() / 2}, interval_{2'000};
};

TEST(AnyServer, an_honest_server_is_never_hung_nor_quiet_where_anything_of_it_can_be_seen) {
  for (int round = 0; round < test::repetitions(1'000); ++round) {
    Simulated server(test::random_seed() + static_cast<unsigned>(round));
    ServerWatch watch;
    for (int looks = 0; server.step(); ++looks) {
      for (const auto& finding : watch.look(server.sample_, server.open_)) {
        const auto state = finding.evidence.state;
        ASSERT_NE(state, S::hung) << "round " << round << ": " << finding.why;
        if (!server.shows_hangs() || looks < 2) continue;
        ASSERT_TRUE(is_busy(state)) << "round " << round << ": " << finding.why;
      }
    }
  }
}

TEST(AnyServer, a_server_that_hangs_is_found_if_it_can_be) {
  int could_be = 0;
  const int rounds = test::repetitions(1'000);
  for (int round = 0; round < rounds; ++round) {
    Simulated server(test::random_seed() + static_cast<unsigned>(round));
    server.hang();
    ServerWatch watch;
    bool is_found = false;
    for (int looks = 0; looks < 3'000 && !is_found && server.step(); ++looks) {
      for (const auto& finding : watch.look(server.sample_, server.open_)) {
        if (finding.evidence.state != S::hung) continue;
        ASSERT_TRUE(server.is_hung()) << "round " << round << ": " << finding.why;
        is_found = true;
      }
    }
    if (!server.shows_this_hang()) continue;
    ++could_be;
    EXPECT_TRUE(is_found) << "round " << round;
  }
  EXPECT_GT(could_be, rounds / 10);
}

}  // namespace
}  // namespace watchdog
