// From a server's inside to the health of an agent. The test looks at a simulated server, and the
// proxy reports what the looks find. The health is concluded from these reports. Each scenario runs
// in random variants.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/json.h"
#include "observer/observer.h"
#include "proxy/sessions/session_recorder.h"
#include "server/server_variant.h"
#include "store/store.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/scenario.h"
#include "watchdog/repetition.h"

namespace watchdog::test {
namespace {

using monitor::AnswerBegan;
using monitor::AnswerPiece;
using monitor::ExchangeBegan;
using monitor::ExchangeEnded;
using monitor::ExchangeEvidence;
using monitor::SessionRecorder;
using How = ExchangeEnded::How;

/// Working days that somebody waits for an answer here: every heartbeat is judged.
constexpr double wait_days = 0.1;
constexpr Millis late_max{5'000};  ///< An observer that looks later was away.

/// A change of a session's health. A plain value.
struct Turn {
  std::string session;
  Instant at{};
  Health health;
  std::string reason;
  bool is_known = false;  ///< The server was known to be busy with it.

  friend bool operator==(const Turn& a, const Turn& b) {
    return a.session == b.session && a.at == b.at && a.health.same_as(b.health) &&
           a.reason == b.reason;
  }
};

std::string text_of(const Turn& turn) {
  return turn.session + " is " + std::string(name_of(turn.health.kind)) + " at " +
         std::to_string(turn.at.time_since_epoch().count() / 1'000) + " s: " + turn.reason;
}

/// Judges reports in memory, as they come.
class Folding {
 public:
  /// It is `now`: what expired since the last call is concluded.
  void pass(Instant now) {
    const auto away = now - now_;
    const bool was_away = now_ != Instant{} && away > late_max;
    now_ = now;
    for (auto& [session, judged] : cases_) {
      if (was_away) {
        Report report;
        report.kind = ReportKind::observer;
        report.detail = ObserverGap{.gap = away};
        fold(session, judged, observer_key, std::move(report));
      }
      judged.expire(now, changes_);
      keep(session, judged);
    }
  }
  void fold(const std::vector<Batch>& batches) {
    for (const Batch& batch : batches)
      for (Report report : batch.reports) {
        if (auto* beats = std::get_if<Heartbeats>(&report.detail))
          beats->first = beats->last = now_;
        mark(report);
        fold(batch.session, cases_[batch.session], 1, std::move(report));
      }
  }

  [[nodiscard]] const Case& of(const std::string& session) { return cases_[session]; }
  [[nodiscard]] const std::vector<Turn>& turns() const { return turns_; }

 private:
  void fold(const std::string& session, Case& judged, SessionKey key, Report report) {
    judged.fold({.seq = ++seq_, .session = key, .tick = now_, .report = std::move(report)},
                changes_);
    keep(session, judged);
  }
  void keep(const std::string& session, const Case& judged) {
    for (auto& change : changes_) {
      const auto* server = server_note(judged.history);
      turns_.push_back({session, change.tick, change.health, std::move(change.reason),
                        server != nullptr && is_busy(server->evidence.state)});
    }
    changes_.clear();
  }

  std::map<std::string, Case> cases_;
  std::vector<Transition> changes_;
  std::vector<Turn> turns_;
  Instant now_{};
  Seq seq_ = 0;
};

/// The same by way of a store and its observer.
std::vector<Turn> turns_in_store(const std::vector<std::pair<Instant, std::vector<Batch>>>& given) {
  ManualClock clock;
  Millis ahead{};  // the store's time, which begins where the wall's is
  std::vector<Turn> turns;
  Observer::Options options{.late_max = late_max};
  options.concluded = [&](const TransitionRow& row, const std::string& session) {
    turns.push_back(
        {session, row.transition.tick - ahead, row.transition.health, row.transition.reason});
  };
  Store store = std::move(*Store::open({.database = ":memory:", .clock = &clock}));
  ahead = store.now() - Instant{clock.since_boot()};
  const auto observer = std::move(*Observer::start(store, std::move(options)));
  for (auto [now, batches] : given) {
    clock.advance(now.time_since_epoch() - clock.since_boot());
    if (!observer->look().ok() || !store.append(batches).ok() || !observer->look().ok()) break;
  }
  return turns;
}

/// A proxy between agents and the server. It records what its engine would of what passes, and the
/// health of the agents is concluded from that at once.
class Relay : public Watcher {
 public:
  /// `keeps`: the relay also collects the reports in `given`.
  explicit Relay(bool keeps) : keeps_(keeps) {}

  void opened(std::uint64_t request, const SimulatedRequest& wanted, bool is_ours) override {
    if (is_ours) {
      ours_ = request;
      slow_at_ = now_ + Pace{}.bounds(Pace::kind_of_phase("model"), {}).slow;
    }
    begin(request, is_ours ? "ours" : "other-" + std::to_string(request), wanted.stream);
  }
  void got(std::uint64_t request, const Piece& piece) override;
  void found(const ServerFinding& finding) override;
  void passed(Instant now) override {
    const auto away = now - now_;
    if (away > late_max && slow_at_ > now_ && slow_at_ != never)
      slow_at_ = std::max(slow_at_, now + std::min(away, hour));
    now_ = now;
    folding.pass(now);
    add(recorder_.beat(wall()));
    const auto kind = health().kind;
    if (open_.contains(ours_) && now >= slow_at_ && severity(kind) == 0 && kind != HealthKind::slow)
      is_slow_late = true;
    if (is_lost && kind != HealthKind::blocked) is_unblocked = true;
  }

  /// All agents have waited for long enough. Ours asks once more, and is answered.
  void go_on();

  [[nodiscard]] const Health& health() { return folding.of("ours").health; }

  Folding folding;
  std::vector<std::pair<Instant, std::vector<Batch>>> given;
  bool is_slow_late = false;      ///< Ours took longer than usual, and was not slow.
  std::optional<Turn> confirmed;  ///< What ours was when it was first found hung,
  std::string why;                ///< and the proof.
  bool is_lost = false;           ///< The server went, and with it our request; then for once
  bool is_unblocked = false;      ///< nobody waited for it.

 private:
  struct Open {
    bool streams = true;
    bool began = false;
    std::optional<Evidence> evidence;  ///< As reported last.
  };

  [[nodiscard]] WallTime wall() const { return WallTime{now_.time_since_epoch()}; }
  void add(std::vector<Batch> batches) {
    folding.fold(batches);
    if (keeps_) given.emplace_back(now_, std::move(batches));
  }
  void see(std::uint64_t request, decltype(monitor::Observation::what) what) {
    add(recorder_.record({.exchange = request, .at = wall(), .what = std::move(what)}));
  }
  void begin(std::uint64_t request, const std::string& session, bool streams) {
    open_[request] = {.streams = streams};
    ExchangeBegan began{
        .method = "POST", .target = "/v1/chat/completions", .session = session, .peer = "::1"};
    began.body = std::make_shared<std::string>(
        std::string(R"({"model":"m","messages":[{"role":"user","content":"Question"}],"stream":)") +
        (streams ? "true}" : "false}"));
    see(request, std::move(began));
  }
  void end(std::uint64_t request, How how, const std::string& message = {}) {
    if (open_.erase(request) > 0) see(request, ExchangeEnded{.how = how, .message = message});
  }

  SessionRecorder recorder_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t ours_ = 0;
  Instant now_{};
  Instant slow_at_ = never;
  bool keeps_;
};

/// Six letters; hardly ever the same ones.
std::string word_of(std::int64_t number) {
  auto left = static_cast<std::uint64_t>(number) * 0x9E37'79B9'7F4A'7C15;
  std::string word = " ";
  for (int at = 0; at < 6; ++at, left /= 26) word += static_cast<char>('a' + left % 26);
  return word;
}

std::string event_of(const std::string& delta, const std::string& more) {
  return R"(data: {"choices":[{"index":0,"delta":{)" + delta + "}" + more + "\n\n";
}

void Relay::got(std::uint64_t request, const Piece& piece) {
  const auto found = open_.find(request);
  if (found == open_.end()) return;
  const bool streams = found->second.streams;
  const auto starts = [&](int status, const char* type) {
    if (!std::exchange(found->second.began, true))
      see(request, AnswerBegan{.status = status, .content_type = type});
  };
  const auto streamed = [&](std::string bytes) {
    starts(200, "text/event-stream");
    see(request, AnswerPiece{std::move(bytes)});
  };
  switch (piece.kind) {
    case PieceKind::head:
      return starts(200, streams ? "text/event-stream" : "application/json");
    case PieceKind::progress:
      return streamed(event_of(R"("role":"assistant","content":null)",
                               R"(}],"prompt_progress":{"total":)" + std::to_string(piece.total) +
                                   R"(,"cache":)" + std::to_string(piece.cached) +
                                   R"(,"processed":)" + std::to_string(piece.read) + "}}"));
    case PieceKind::token:
      return streamed(event_of(R"("content":")" + word_of(piece.written) + "\"", "}]}"));
    case PieceKind::ping:
      return streamed(":\n\n");
    case PieceKind::done:
      if (streams) {
        streamed(event_of("", R"(,"finish_reason":"stop"}]})") + "data: [DONE]\n\n");
      } else {
        starts(200, "application/json");
        see(request, AnswerPiece{R"({"choices":[{"index":0,"finish_reason":"stop",)"
                                 R"("message":{"role":"assistant","content":"Answer"}}]})"});
      }
      return end(request, How::answered);
    case PieceKind::error:
      if (found->second.began && streams) {
        streamed(R"(data: {"error":{"message":"Compute error."}})"
                 "\n\n");
      } else {
        starts(piece.status, "application/json");
        see(request, AnswerPiece{R"({"error":{"message":")" + std::string(piece.message) + "\"}}"});
      }
      return end(request, How::answered);
    case PieceKind::cut:
      return end(request, How::answered);
    case PieceKind::lost:
      return end(request, How::lost);
    case PieceKind::refused:
      return end(request, How::refused);
  }
}

void Relay::found(const ServerFinding& finding) {
  const auto found = open_.find(finding.request);
  const auto& is = finding.evidence;
  if (found == open_.end() || found->second.evidence == is) return;
  found->second.evidence = is;
  see(finding.request, ExchangeEvidence{is, finding.why});
  const bool is_ours = finding.request == ours_;
  if (is_ours && is.state == ServerState::hung && !confirmed) {
    confirmed = {"ours", now_, health(), reason_of(health(), folding.of("ours").history, {}), {}};
    why = finding.why;
  }
  if (is.state != ServerState::gone && is.state != ServerState::restarted) return;
  end(finding.request, How::lost, finding.why);
  is_lost = is_lost || is_ours;
}

void Relay::go_on() {
  slow_at_ = never;
  while (!open_.empty()) end(open_.begin()->first, How::client_gone, "the client hung up");
  const auto later = [&] { passed(now_ + step); };
  later();
  is_lost = false;
  const auto again = ours_ + 1'000'000;
  begin(again, "ours", /*streams=*/true);
  later();
  for (std::int64_t at = 1; at <= 3; ++at) {
    got(again, {.kind = PieceKind::token, .written = at});
    later();
  }
  got(again, {.kind = PieceKind::done});
  later();
}

/// A session that is worse than slow though it should not be; empty: none is.
using MayBe = bool (*)(const Turn&);
std::string worse_than(const Relay& relay, MayBe may_be) {
  for (const Turn& turn : relay.folding.turns())
    if (is_trouble(turn.health.kind) && !may_be(turn)) return text_of(turn);
  return {};
}

/// Where nothing is known of a server, there is the pace to go by.
bool is_guess(const Turn& turn) {
  return turn.health.kind == HealthKind::suspect && turn.health.pattern == Pattern::below_pace &&
         !turn.is_known;
}

void run(const char* name, void (*make)(Variant&),
         std::string (*wrong_with)(const Variant&, const Seen&, Relay&)) {
  const int variants = repetitions(1'000, 50);
  int wrong = 0;
  std::size_t turns = 0;
  for (int at = 0; at < variants; ++at) {
    Variant v = variant(random_seed() + static_cast<unsigned>(at), wait_days);
    make(v);
    v.ends_after = v.fault ? day : 2 * hour;
    // From afar it is hardly ever known, and where others wait it takes long.
    if (!v.from.is_local || v.others > 0) v.given_up_after = std::min(v.given_up_after, hour);
    Relay relay(/*keeps=*/at % 50 == 0);
    const Seen seen = watch(v, &relay);
    std::string why = wrong_with(v, seen, relay);
    relay.go_on();
    if (why.empty() && relay.health().kind != HealthKind::idle) why = "answered, and not idle";
    turns += relay.folding.turns().size();
    if (why.empty() && !relay.given.empty() && turns_in_store(relay.given) != relay.folding.turns())
      why = "judged otherwise in a store";
    if (why.empty()) continue;
    if (++wrong > 5) continue;
    std::string all;
    for (const Turn& turn : relay.folding.turns()) all += "\n  " + text_of(turn);
    ADD_FAILURE() << name << ": " << why << "\n  " << text_of(v) << "\n  " << path_of(seen) << all;
  }
  EXPECT_EQ(wrong, 0) << name << ": of " << variants;
  std::cout << name << ": " << variants << " variants, " << turns << " changes of health"
            << std::endl;
}

std::string slow(const Variant& v, const Seen&, Relay& relay) {
  if (relay.is_slow_late) return "it takes long, and is not slow";
  return worse_than(relay, v.from.is_local ? [](const Turn&) { return false; } : is_guess);
}

TEST(SlowChain, a_long_prompt_is_being_read) {
  run("long prompt", long_prompt, slow);
}

TEST(SlowChain, an_answer_is_written_token_by_token) {
  run("slow answer", slow_answer, slow);
}

TEST(SlowChain, batches_take_minutes) {
  run("slow batches", slow_batches, slow);
}

TEST(SlowChain, one_batch_takes_an_hour) {
  run("hour-long batches", hour_long_batches, slow);
}

TEST(SlowChain, it_waits_for_its_turn) {
  run("queue", queue, slow);
}

TEST(SlowChain, the_model_is_loaded_first) {
  run("loading", loading, slow);
}

TEST(SlowChain, an_old_build_says_nothing_while_it_reads) {
  run("old build", old_build, slow);
}

TEST(SlowChain, anything_at_all) {
  run("anything slow", anything, slow);
}

TEST(SlowChain, the_machine_sleeps_in_between) {
  run("machine paused", machine_paused, slow);
}

TEST(SlowChain, the_process_computes_and_nothing_else_reports) {
  run("livelock", livelock, slow);
}

/// A session whose request is found hung is stuck at once, with the reason that was found. No other
/// session is stuck.
std::string stuck(const Variant&, const Seen& seen, Relay& relay) {
  if (seen.hung_after && !relay.confirmed) return "found, and not told";
  if (const auto& is = relay.confirmed) {
    if (is->health.kind != HealthKind::stuck || is->health.pattern != Pattern::server_status)
      return "found hung, and " + text_of(*is);
    if (is->reason.find(relay.why) == std::string::npos) return "without its reason: " + is->reason;
  }
  return worse_than(relay, [](const Turn& turn) {
    return is_guess(turn) || turn.health.pattern == Pattern::server_status;
  });
}

TEST(HungChain, in_the_middle_of_an_answer) {
  run("hang while writing", hang_while_writing, stuck);
}

TEST(HungChain, in_the_middle_of_a_prompt) {
  run("hang while reading", hang_while_reading, stuck);
}

TEST(HungChain, a_request_that_was_swallowed) {
  run("swallowed", swallowed, stuck);
}

TEST(HungChain, no_other_request_when_one_slot_stalls) {
  run("stalled slot", stalled_slot, [](const Variant& v, const Seen& seen, Relay& relay) {
    const auto wrong = stuck(v, seen, relay);
    return !wrong.empty() ? wrong : worse_than(relay, [](const Turn& turn) {
      return is_guess(turn) || turn.session == "ours";
    });
  });
}

std::string waited_for(const Variant& v, const Seen& seen, Relay& relay) {
  if (relay.is_unblocked) return "the server is away, and not waited for";
  const auto last = seen.last.evidence.state;
  const bool is_shown = last == ServerState::gone || last == ServerState::restarted;
  if (is_shown != relay.is_lost) return "it is away, and not told";
  // From afar a request that is lost looks like one that was swallowed; and who never saw the
  // server before cannot show it.
  if (!v.from.is_local || seen.looks_before == 0) return {};
  return worse_than(relay, [](const Turn&) { return false; });
}

TEST(LostChain, it_was_restarted) {
  run("restart", restart, waited_for);
}

TEST(LostChain, it_is_gone) {
  run("gone", gone, waited_for);
}

}  // namespace
}  // namespace watchdog::test
