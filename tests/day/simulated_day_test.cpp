// A day of a thousand agents in virtual time, from one seed: the real store, observer and rules,
// with a clock that only this test moves. Each agent knows the truth about itself; at the end what
// the monitor concluded, stored and reported to people is compared with it.
//
// A seed that fails is printed. It replays alone:
//   WATCHDOG_SEED=17 simulated_day_test --gtest_filter='*/0'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "day/disk.h"
#include "day/simulated_agent.h"
#include "observer/observer.h"
#include "store/alert_acts.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "store/store.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using namespace test;

constexpr Millis day{24LL * 3'600'000};
constexpr int agents_count = 1'000;

class Day {
 public:
  explicit Day(std::uint64_t seed) : random_(seed) {
    open();
    for (int at = 0; at < agents_count; ++at) add_agent(static_cast<Kind>(at % kinds));
    for (int at = 0; at < 3; ++at) plan(World::suspend, some_time(1min, 90min));
    for (int at = 0; at < 4; ++at) plan(World::stop, some_time(2s, 20min));
    for (int at = 0; at < 3; ++at) plan(World::crash, some_time(1s, 10min));
    for (int at = 0; at < 3; ++at) plan(World::full_disk, some_time(10s, 10min));
    for (int at = 0; at < 6; ++at) plan(World::wrong_clock, some_time(30s, 30min));
    for (Millis at = 1h; at < day; at += 1h) plans_.push({at, World::retention, 0ms});
  }

  void live() {
    while (awake_ < day) {
      const auto next = std::min({awake_ + step, turn_at_, next_plan(), next_agent()});
      pass(std::max(next - awake_, 0ms));
      while (next_plan() <= awake_) happen();
      while (next_agent() <= awake_) act();
      if (turn_at_ <= awake_ || !inbox_.empty()) turn();
    }
    settle();
  }

  void compare() {
    ASSERT_FALSE(testing::Test::HasFailure());
    compare_events();
    compare_healths();
    compare_alerts();
    std::printf(
        "%zu agents, %zu events, %zu duplicates, %zu refusals, %zu hangs, %zu deaths, %zu alerts\n",
        agents_.size(), events_, duplicates_, refused_, hangs_, deaths_, sent_.size());
    EXPECT_GT(events_, 50'000U);
    EXPECT_GT(duplicates_, 500U);
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(hangs_, 150U);
    EXPECT_GT(deaths_, 50U);
  }

 private:
  enum class World : std::uint8_t { suspend, stop, crash, full_disk, wrong_clock, retention, back };
  struct Plan {
    Millis at{};
    World what = World::back;
    Millis length{};
    friend bool operator>(const Plan& a, const Plan& b) { return a.at > b.at; }
  };
  using Turn = std::pair<Millis, std::size_t>;

  template <class A, class B>
  Millis some_time(A from, B to) {
    const Millis low{from};
    return low + Millis{static_cast<std::int64_t>(random_() % (Millis{to} - low).count())};
  }
  [[nodiscard]] Instant now() const { return Instant{clock_.since_boot() + offset_}; }

  void plan(World what, Millis length) { plans_.push({some_time(10min, day - 2h), what, length}); }
  [[nodiscard]] Millis next_plan() const {
    return plans_.empty() ? Millis::max() : plans_.top().at;
  }
  [[nodiscard]] Millis next_agent() const {
    return agents_due_.empty() ? Millis::max() : agents_due_.top().first;
  }

  void pass(Millis time) {
    awake_ += time;
    clock_.advance(time);
  }

  // --- The world.

  void open() {
    auto opened = Store::open({.database = dir_ / "day.db", .clock = &clock_});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_.emplace(std::move(*opened));
    offset_ = store_->now() - Instant{clock_.since_boot()};
    AlertRules rules;
    rules.channels = {"pager"};
    auto started = Observer::start(*store_, {.alerts = rules});
    ASSERT_TRUE(started.ok()) << started.error().message;
    observer_ = std::move(*started);
    begins_ = true;
    turn_at_ = awake_;
  }

  /// Plans do not overlap: where one holds, the next waits for its end.
  void happen() {
    auto plan = plans_.top();
    plans_.pop();
    const bool lasts = plan.what != World::suspend && plan.what != World::back &&
                       plan.what != World::retention && plan.what != World::wrong_clock;
    if ((lasts || plan.what == World::retention) && (stopped_ || full_disk_ != nullptr)) {
      plan.at = awake_ + 10min;
      plans_.push(plan);
      return;
    }
    switch (plan.what) {
      case World::suspend:
        clock_.advance(plan.length);  // nobody acts meanwhile
        break;
      case World::stop:
        stopped_ = true;
        break;
      case World::crash:
        stopped_ = true;
        observer_.reset();
        store_.reset();
        break;
      case World::full_disk:
        full_disk_ = std::make_unique<FullDisk>();
        break;
      case World::wrong_clock:
        clock_.set_wrong((random_() % 2 == 0 ? 1 : -1) * some_time(2h, 60 * day));
        clock_right_at_ = awake_ + plan.length;
        plans_.push({clock_right_at_, World::back, 0ms});
        break;
      case World::retention:
        retain();
        break;
      case World::back:
        if (awake_ >= clock_right_at_) clock_.set_wrong(0ms);
        if (awake_ >= trouble_over_at_) {
          full_disk_.reset();
          stopped_ = false;
          if (!observer_) open();
        }
        break;
    }
    if (lasts) {
      trouble_over_at_ = awake_ + plan.length;
      plans_.push({trouble_over_at_, World::back, 0ms});
    }
  }

  void retain() {
    ASSERT_TRUE(observer_->checkpoint().ok());
    const Retention retention{.folded_through = observer_->folded()};
    for (bool more = true; more;) {
      const auto trimmed = RetentionActs(*store_).trim(retention);
      ASSERT_TRUE(trimmed.ok()) << trimmed.error().message;
      more = *trimmed;
    }
    EXPECT_TRUE(RetentionActs(*store_).drain_dropped().empty()) << "nothing is 30 days old";
  }

  // --- The monitor.

  /// As its store thread: it arrives, stores what came in, looks, and sends messages.
  void turn() {
    turn_at_ = awake_ + step;
    auto batches = std::exchange(inbox_, {});
    auto senders = std::exchange(senders_, {});
    if (stopped_ || !well(observer_->arrive())) return;
    for (const auto& id : to_cancel_) {
      Report request{.kind = ReportKind::cancel};
      request.detail = CancelRequest{.by = "user", .reason = "enough"};
      batches.push_back({.session = id, .reports = {std::move(request)}});
    }
    if (!batches.empty()) {
      auto receipts = store_->append(batches);
      if (!well(receipts)) return;
      for (const auto& receipt : *receipts) duplicates_ += receipt ? receipt->duplicates : 0;
      to_cancel_.clear();
      for (std::size_t at = 0; at < senders.size(); ++at) answer(senders[at], (*receipts)[at]);
    }
    const auto due = observer_->look();
    if (!well(due)) return;
    if (*due != never) turn_at_ = std::clamp(awake_ + (*due - now()), awake_, turn_at_);
    send_messages();
  }

  /// Only a full disk makes the store fail.
  template <class T>
  bool well(const Result<T>& result) {
    if (result) return true;
    if (full_disk_ == nullptr) ADD_FAILURE() << result.error().message;
    ++refused_;
    return false;
  }

  void answer(const std::pair<std::size_t, std::size_t>& sender, const Result<Receipt>& receipt) {
    auto& agent = *agents_[sender.first];
    ASSERT_TRUE(receipt.ok()) << receipt.error().message;
    if (chance(agent, agent.kind == Kind::unreliable ? 15 : 1)) return;  // the answer is lost
    agent.outbox.erase(agent.outbox.begin(),
                       agent.outbox.begin() + static_cast<std::ptrdiff_t>(sender.second));
    if (receipt->directive.cancel && !agent.asked_to_stop) {
      agent.asked_to_stop = true;
      agent.leaves = std::min(agent.leaves, awake_ + between(agent, 5s, 35s));
      agent.works_at = std::min(agent.works_at, agent.leaves);
    }
  }

  void send_messages() {
    if (!unnoted_.empty() && !note()) return;
    if (!AlertActs(*store_).drain_new_messages() && !std::exchange(begins_, false)) return;
    const auto alerts = store_->reader().alerts({.state = DeliveryState::pending, .limit = 1'000});
    ASSERT_TRUE(alerts.ok());
    for (const auto& alert : *alerts) {
      if (alert.message.empty()) continue;  // waits for others
      ++sent_[alert.id];
      unnoted_.push_back(alert.id);
    }
    if (!unnoted_.empty()) note();
  }
  bool note() {
    const auto noted = AlertActs(*store_).note({.channel = "pager", .alerts = unnoted_});
    if (well(noted)) unnoted_.clear();
    return unnoted_.empty();
  }

  // --- Agents.

  std::size_t add_agent(Kind kind, std::string parent = {}) {
    auto made = std::make_unique<Agent>();
    auto& agent = *made;
    const auto number = agents_.size();
    agent.kind = kind;
    agent.id = "agent-" + std::to_string(number);
    agent.parent = std::move(parent);
    agent.random.seed(random_());
    agent.interval = chance(agent, 10) ? 10s : chance(agent, 30) ? 30s : 60s;
    agent.born = agent.parent.empty() ? between(agent, 0s, day - 5h) : awake_;
    agent.leaves = agent.born + between(agent, 30min, 120min);
    agent.trouble_from = agent.born + between(agent, 10min, 60min);
    agent.trouble_until = Millis::max();
    if (kind == Kind::looping || kind == Kind::spinning || kind == Kind::frozen) {
      agent.leaves = agent.trouble_from + between(agent, 70min, 120min);
      // As much of its time as the machine may sleep, and as its call may be slow.
      if (kind == Kind::frozen) agent.leaves += 60min;
      if (kind == Kind::looping && chance(agent, 30))
        agent.trouble_until = agent.trouble_from + between(agent, 30min, 60min);
    }
    agents_due_.emplace(agent.born, number);
    agents_.push_back(std::move(made));
    return number;
  }

  void act() {
    const auto [at, number] = agents_due_.top();
    agents_due_.pop();
    auto& agent = *agents_[number];
    if (agent.over && agent.outbox.empty()) return;
    if (agent.next() > at) {  // its plans changed
      agents_due_.emplace(agent.next(), number);
      return;
    }
    if (!agent.began) {
      begin(agent);
    } else if (!agent.over) {
      if (agent.works_at <= awake_) work(number);
      // `work` may add agents, which moves none of them.
      if (!agent.over && agent.beats_at <= awake_) {
        agent.beats.push_back(beat(Source::sidecar));
        agent.beats_at = awake_ + agent.interval;
      }
    }
    if (agent.gone) agent.beats.clear();
    send(number);
    if (agent.over && agent.outbox.empty()) return;
    if (agent.over) agent.beats_at = agent.works_at = Millis::max();
    agents_due_.emplace(std::max(agent.next(), awake_ + step), number);
  }

  void begin(Agent& agent) {
    agent.began = true;
    if (agent.kind == Kind::dying || agent.kind == Kind::restarting) {
      agent.process = std::make_unique<Spawned>(std::vector<std::string>{"sleep", "10000"});
    }
    start(agent);
    agent.beats_at = agent.works_at = awake_;
    agent.sends_at = Millis::max();
  }
  void finish(Agent& agent, OutcomeKind outcome, const char* reason) {
    Report end{.kind = ReportKind::end};
    end.detail = Outcome{.kind = outcome, .reason = reason};
    say(agent, std::move(end));
    agent.over = true;
    agent.failed = outcome == OutcomeKind::failed;
    for (auto& trouble : agent.troubles) trouble.until = std::min(trouble.until, now());
  }

  void work(std::size_t number) {
    auto& agent = *agents_[number];
    if (agent.asked_to_stop && awake_ >= agent.leaves) {
      return finish(agent, OutcomeKind::cancelled, "cancelled_by_user");
    }
    if (agent.gone) return come_back(agent);
    const bool in_trouble = awake_ >= agent.trouble_from && awake_ < agent.trouble_until;
    const bool hangs =
        agent.kind == Kind::looping || agent.kind == Kind::spinning || agent.kind == Kind::frozen;
    if (awake_ >= agent.leaves && agent.open_call.empty() && agent.child < 0) {
      const bool fails = (hangs && in_trouble) || chance(agent, 10);
      return finish(agent, fails ? OutcomeKind::failed : OutcomeKind::completed,
                    fails ? "task_failed" : "task_complete");
    }
    if (awake_ >= agent.leaves && hangs) {  // somebody gave up on it
      return finish(agent, OutcomeKind::failed, "task_failed");
    }
    auto pause = in_trouble || agent.child >= 0 ? own(number) : honest(agent);
    if (awake_ >= agent.trouble_until && !agent.troubles.empty() &&
        agent.troubles.back().until == never) {
      agent.troubles.back().until = now();
    }
    agent.works_at = awake_ + std::max(pause, step);
  }

  /// Does what is special about the agent's kind, once its trouble has begun. Returns the pause
  /// until the agent works again.
  Millis own(std::size_t number) {
    auto& agent = *agents_[number];
    const auto really = [&] {
      if (agent.troubles.empty() || agent.troubles.back().until != never)
        agent.troubles.push_back({.from = now()});
    };
    switch (agent.kind) {
      case Kind::steady:
      case Kind::unreliable:
        return honest(agent);
      case Kind::slow_reader: {
        const auto pause = honest(agent);
        if (!agent.open_call.empty() || !chance(agent, 40)) return pause;
        return between(agent, 2min, 25min);
      }
      case Kind::waiting:
        if (!agent.open_call.empty() || !chance(agent, 30)) return honest(agent);
        say(agent, {.kind = ReportKind::wait, .name = "human"});
        return between(agent, 10min, 120min);
      case Kind::looping: {
        really();
        agent.beats.push_back(loop_beat(agent));
        const auto call = new_call(agent);
        say(agent, called("read", R"({"path":"a"})", call));
        say(agent, returned("read", "what is in it, and that is the same each time", call));
        return between(agent, 10s, 120s);
      }
      case Kind::spinning:
        if (!agent.open_call.empty()) return honest(agent);
        really();
        agent.beats.push_back(loop_beat(agent));
        return agent.interval;
      case Kind::frozen:
        // Its last call hangs, and that one says how long it may take.
        if (!agent.open_call.empty()) return honest(agent);
        if (agent.troubles.empty()) {
          really();
          auto report = called("build", words(agent, 4), new_call(agent));
          report.deadline = 5min;
          say(agent, std::move(report));
        }
        return 10min;
      case Kind::dying:
      case Kind::restarting:
        agent.process->end();
        agent.gone = true;
        agent.absences.push_back({.from = now()});
        agent.open_call.clear();
        // The process loses the reports that it had in memory.
        agent.said.resize(agent.said.size() - agent.outbox.size());
        for (const auto& report : agent.outbox) agent.unknown.insert(report.event_id);
        agent.outbox.clear();
        return agent.kind == Kind::dying ? 10 * day : between(agent, 5s, 60s);
      case Kind::suspended:
        agent.asleep_until = awake_ + between(agent, 10min, 120min);
        agent.trouble_from = agent.asleep_until + 20min;
        return honest(agent);
      case Kind::cancelled: {
        agent.trouble_from = Millis::max();
        to_cancel_.push_back(agent.id);
        return honest(agent);
      }
      case Kind::parent:
        return delegate(number);
    }
    return step;
  }

  void come_back(Agent& agent) {
    if (agent.kind == Kind::dying) {
      agent.works_at = Millis::max();
      return;
    }
    agent.process = std::make_unique<Spawned>(std::vector<std::string>{"sleep", "10000"});
    agent.gone = false;
    agent.absences.back().until = now();
    agent.trouble_from = awake_ + between(agent, 10min, 60min);
    start(agent);
    agent.works_at = awake_ + step;
    agent.beats_at = awake_;
  }

  Millis delegate(std::size_t number) {
    if (agents_[number]->child < 0) {
      if (!agents_[number]->open_call.empty()) return honest(*agents_[number]);
      const auto child =
          add_agent(random_() % 3 == 0 ? Kind::looping : Kind::steady, agents_[number]->id);
      auto& agent = *agents_[number];
      agent.child = static_cast<int>(child);
      agent.open_call = new_call(agent);
      auto report = called("task", R"({"prompt":")" + words(agent, 5) + "\"}", agent.open_call);
      report.deadline = 5h;
      say(agent, std::move(report));
      return 1min;
    }
    auto& agent = *agents_[number];
    if (!agents_[static_cast<std::size_t>(agent.child)]->over) return 1min;
    agent.child = -1;
    agent.trouble_from = Millis::max();
    say(agent, returned("task", words(agent, 8), std::exchange(agent.open_call, {})));
    return step;
  }

  /// Sends the reports that wait. The agent sends a lost report again, but not a lost heartbeat.
  void send(std::size_t number) {
    auto& agent = *agents_[number];
    agent.sends_at = Millis::max();
    if (agent.gone || (agent.outbox.empty() && agent.beats.empty())) return;
    if (!agent.outbox.empty()) agent.sends_at = awake_ + 2 * step;
    // Three lost in a row would be silence, as far as anybody can know.
    const bool lost =
        agent.kind == Kind::unreliable ? chance(agent, 15) : chance(agent, 1) && !agent.lost_before;
    agent.lost_before = lost;
    if (!lost && !stopped_) {
      Batch batch{.session = agent.id, .creation = Creation::attach};
      batch.spec.agent = "simulated";
      batch.spec.parent = agent.parent;
      batch.spec.policy.heartbeat_interval = agent.interval;
      batch.reports = agent.outbox;
      batch.reports.insert(batch.reports.end(), agent.beats.begin(), agent.beats.end());
      inbox_.push_back(std::move(batch));
      senders_.emplace_back(number, agent.outbox.size());
    }
    agent.beats.clear();
  }

  // --- The end of the day.

  void settle() {
    full_disk_.reset();
    clock_.set_wrong(0ms);
    stopped_ = false;
    if (!observer_) open();
    closed_ = now();  // no agent works after this: later verdicts are not false alarms
    for (int round = 0; round < 60; ++round) {
      pass(step);
      for (std::size_t number = 0; number < agents_.size(); ++number) {
        if (!agents_[number]->outbox.empty()) send(number);
      }
      turn();
    }
    for (const auto& agent : agents_) ASSERT_TRUE(agent->outbox.empty()) << agent->id;
  }

  void compare_events() {
    std::map<SessionKey, std::vector<std::string>> stored;
    for (Seq after = 0;;) {
      const auto events = EventReader(store_->reader()).after(after, 10'000);
      ASSERT_TRUE(events.ok());
      if (events->empty()) break;
      for (const auto& event : *events) {
        after = event.seq;
        ++events_;
        if (!event.report.event_id.empty()) stored[event.session].push_back(event.report.event_id);
      }
    }
    for (const auto& agent : agents_) {
      if (!agent->began || agent->said.empty()) continue;  // killed before anything arrived
      const auto row = store_->reader().session(agent->id);
      ASSERT_TRUE(row.ok()) << agent->id;
      auto& found = stored[row->key];
      std::erase_if(found, [&](const std::string& id) { return agent->unknown.contains(id); });
      ASSERT_EQ(found, agent->said) << agent->id << ": events are lost, twice or out of order";
    }
  }

  void compare_healths() {
    int wrong = 0;
    int sessions = 0;
    for (const auto& agent : agents_) {
      if (!agent->began || agent->said.empty()) continue;
      ++sessions;
      const auto row = store_->reader().session(agent->id);
      const auto transitions = TransitionReader(store_->reader()).of(row->key, 0, 10'000);
      const auto found = [&](const Span& span, std::initializer_list<HealthKind> healths) {
        return std::any_of(
            transitions->begin(), transitions->end(), [&](const TransitionRow& change) {
              const auto& [at, kind] =
                  std::pair(change.transition.tick, change.transition.health.kind);
              return span.holds(at, 1min) &&
                     std::find(healths.begin(), healths.end(), kind) != healths.end();
            });
      };
      for (const auto& change : *transitions) {
        const auto at = change.transition.tick;
        if (at > closed_) continue;
        const auto really = [&](const std::vector<Span>& spans, Millis longer) {
          return std::any_of(spans.begin(), spans.end(),
                             [&](const Span& span) { return span.holds(at, longer); });
        };
        const auto kind = change.transition.health.kind;
        if (kind == HealthKind::dead) {
          EXPECT_TRUE(really(agent->absences, 0ms)) << agent->id << " is called dead and lives";
        }
        if ((kind == HealthKind::stuck || kind == HealthKind::looping) &&
            !really(agent->troubles, 10min)) {
          ++wrong;
          std::printf("%s, kind %d, is called %s: %s\n", agent->id.c_str(),
                      static_cast<int>(agent->kind), std::string(name_of(kind)).c_str(),
                      change.transition.reason.c_str());
        }
      }
      for (const auto& trouble : agent->troubles) {
        ++hangs_;
        if (agent->kind == Kind::frozen) {
          EXPECT_TRUE(found(trouble, {HealthKind::suspect, HealthKind::stuck, HealthKind::looping}))
              << agent->id << " froze and nobody noticed";
        } else {
          EXPECT_TRUE(found(trouble, {HealthKind::stuck, HealthKind::looping}))
              << agent->id << ", kind " << static_cast<int>(agent->kind)
              << ", hung and nobody noticed";
        }
      }
      if (agent->kind == Kind::dying && !agent->absences.empty()) {
        ++deaths_;
        EXPECT_TRUE(found(agent->absences.back(), {HealthKind::dead}))
            << agent->id << " died and nobody noticed";
      }
    }
    EXPECT_LE(wrong * 1'000, sessions) << "called stuck or looping while they worked";
  }

  void compare_alerts() {
    std::vector<Alert> alerts;
    for (std::int64_t after = 0;;) {
      const auto page = store_->reader().alerts({.after = after, .limit = 1'000});
      ASSERT_TRUE(page.ok());
      if (page->empty()) break;
      alerts.insert(alerts.end(), page->begin(), page->end());
      after = page->back().id;
    }
    std::map<std::string, int> of;
    std::set<std::tuple<std::string, Instant, std::string>> reported;
    for (const auto& alert : alerts) {
      EXPECT_EQ(sent_[alert.id], 1) << alert.session << ": " << alert.word;
      ASSERT_EQ(alert.deliveries.size(), 1U);
      EXPECT_EQ(alert.deliveries.front().state, DeliveryState::sent);
      if (alert.kind != AlertKind::alert) continue;
      ++of[alert.session];
      EXPECT_TRUE(reported.emplace(alert.session, alert.episode, alert.word).second)
          << alert.session << " is told twice: " << alert.word;
    }
    EXPECT_EQ(sent_.size(), alerts.size());
    for (const auto& agent : agents_) {
      if (!agent->began || agent->said.empty()) continue;
      const bool dead = agent->kind == Kind::dying && !agent->absences.empty();
      const bool hung = !agent->troubles.empty() && agent->kind != Kind::frozen;
      if (agent->failed || dead || hung) {
        EXPECT_GE(of[agent->id], 1) << agent->id << ": nobody was told";
      } else if (agent->kind == Kind::steady) {
        EXPECT_EQ(of[agent->id], 0) << agent->id << ": nothing happened to it";
      }
    }
  }

  TempDir dir_{quick_directory()};
  std::mt19937_64 random_;
  ManualClock clock_;
  std::optional<Store> store_;
  std::unique_ptr<Observer> observer_;
  Millis offset_{};
  Millis awake_{};    ///< Since the day began, without suspends.
  Millis turn_at_{};  ///< When the monitor looks again at the latest.
  std::priority_queue<Plan, std::vector<Plan>, std::greater<>> plans_;
  bool begins_ = true;  ///< The monitor has not looked for messages yet.
  bool stopped_ = false;
  std::unique_ptr<FullDisk> full_disk_;
  Millis trouble_over_at_{}, clock_right_at_{};
  Instant closed_{};

  std::vector<std::unique_ptr<Agent>> agents_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> agents_due_;
  std::vector<Batch> inbox_;
  std::vector<std::pair<std::size_t, std::size_t>> senders_;  ///< And how much of its outbox.
  std::vector<std::string> to_cancel_;  ///< Sessions, until the store has the request.
  std::map<std::int64_t, int> sent_;    ///< How often each alert was.
  std::vector<std::int64_t> unnoted_;
  // That all this happened at all:
  std::size_t events_ = 0, duplicates_ = 0, refused_ = 0, hangs_ = 0, deaths_ = 0;
};

constexpr int parts = 3;

class SimulatedDay : public testing::TestWithParam<int> {};

TEST_P(SimulatedDay, ends_with_what_really_happened) {
  std::vector<std::uint64_t> seeds;
  if (const char* one = std::getenv("WATCHDOG_SEED")) {  // NOLINT(concurrency-mt-unsafe)
    seeds.push_back(std::strtoull(one, nullptr, 10));
  } else {
    const std::uint64_t count = std::getenv("WATCHDOG_FULL") != nullptr ? 1'000 : 6;  // NOLINT
    for (std::uint64_t seed = static_cast<std::uint64_t>(GetParam()); seed < count; seed += parts)
      seeds.push_back(seed + 1);
  }
  for (const auto seed : seeds) {
    Day today(seed);
    today.live();
    today.compare();
    if (!HasFailure()) continue;
    FAIL() << "this day replays with WATCHDOG_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulatedDay, testing::Range(0, parts));

}  // namespace
}  // namespace watchdog
