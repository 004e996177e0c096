// Sessions that ended are at rest, so only the others are judged. Which of several speaks for all
// is decided by the order of the words; of equals the one that changed last does. A question that
// waits for a word looks once a second, when the server asks whether its client may have more.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/long_poll.h"
#include "api/routes.h"
#include "core/activity.h"
#include "core/session_row.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr int rows_at_once = 500;  ///< Read from the file.
/// Before the limits of most reverse proxies.
constexpr std::int64_t wait_ms_max = 25'000;
/// Questions that wait. Each looks once a second, at one session or at all.
constexpr int waits_for_one_max = 500;
constexpr int waits_for_all_max = 20;

/// The question of a client. A plain value.
struct Question {
  std::string session;  ///< Empty: all of the filter.
  SessionFilter filter;
  std::vector<Activity> is;      ///< Words that are good; empty: all.
  std::vector<Activity> is_not;  ///< Words that are not.
  std::vector<Activity> until;   ///< Words that are awaited; empty: none.

  [[nodiscard]] bool is_good(Activity activity) const {
    return (is.empty() || std::ranges::count(is, activity) > 0) &&
           std::ranges::count(is_not, activity) == 0;
  }
};

/// The session that speaks for all that were asked for, and their numbers.
struct Found {
  std::array<std::int64_t, std::size(Names<Activity>::all)> counts{};
  Activity activity = Activity::unknown;
  std::string session{}, reason{};
  WallTime since{};

  void add(const std::string& id, Activity one, WallTime one_since, std::string why) {
    ++counts[static_cast<std::size_t>(one)];
    if (!session.empty() && (one > activity || (one == activity && one_since <= since))) return;
    activity = one;
    session = id;
    reason = std::move(why);
    since = one_since;
  }
};

Result<void> add(Backend& backend, StoreReader& reader, const SessionRow& row, WallTime wall,
                 Found& found) {
  const auto watched = look_up(backend, reader, row);
  if (!watched) return watched.error();
  const auto now = backend.now();
  found.add(row.id, activity_of(watched->judged, wall), standing_since(watched->judged, now, wall),
            reason_of(watched->judged, now));
  return {};
}

Result<Found> find_all(Backend& backend, StoreReader& reader, SessionFilter filter, WallTime wall) {
  Found found;
  filter.limit = rows_at_once;
  for (const auto lifecycle : {Lifecycle::running, Lifecycle::waiting, Lifecycle::idle}) {
    filter.lifecycle = lifecycle;
    filter.after = 0;
    for (int looked = 0; looked < rows_max; looked += rows_at_once) {
      const auto rows = reader.sessions(filter);
      if (!rows) return rows.error();
      for (const auto& row : *rows)
        if (auto added = add(backend, reader, row, wall, found); !added) return added.error();
      if (static_cast<int>(rows->size()) < rows_at_once) break;
      filter.after = rows->back().key;
    }
  }
  if (!found.session.empty()) return found;
  // The newest of those that ended, if there is one.
  filter.lifecycle.reset();
  filter.after = 0;
  filter.limit = 1;
  const auto rows = reader.sessions(filter);
  if (!rows) return rows.error();
  for (const auto& row : *rows)
    if (auto added = add(backend, reader, row, wall, found); !added) return added.error();
  return found;
}

Result<Found> find(Backend& backend, StoreReader& reader, const Question& question, WallTime wall) {
  if (question.session.empty()) return find_all(backend, reader, question.filter, wall);
  const auto row = reader.session(question.session);
  if (!row) return row.error();
  Found found;
  const auto added = add(backend, reader, *row, wall, found);
  return added ? Result<Found>(std::move(found)) : Result<Found>(added.error());
}

std::string text_of(const Found& found, WallTime wall) {
  JsonWriter out;
  out.open_object().field("activity", name_of(found.activity)).key("sessionId");
  const bool is_there = !found.session.empty();
  is_there ? out.value(found.session) : out.value(nullptr);
  out.field("reason", is_there ? std::string_view(found.reason) : "No session is known");
  out.key("since");
  is_there ? out.value(found.since.time_since_epoch().count()) : out.value(nullptr);
  out.key("sessions").open_object();
  for (std::size_t at = 0; at < found.counts.size(); ++at)
    out.field(Names<Activity>::all[at], found.counts[at]);
  out.close_object().field("now", wall.time_since_epoch().count()).close_object();
  return out.finish();
}

/// An answer that comes when the word is one of those that are awaited, or in time.
class AwaitedActivity final : public LongPoll,
                              public std::enable_shared_from_this<AwaitedActivity> {
 public:
  AwaitedActivity(Backend& backend, Question question, std::chrono::milliseconds at_most,
                  std::function<bool()> allowed)
      : backend_(backend),
        question_(std::move(question)),
        until_(std::chrono::steady_clock::now() + at_most),
        allowed_(std::move(allowed)) {
    ++open(question_);
  }
  AwaitedActivity(const AwaitedActivity&) = delete;
  AwaitedActivity& operator=(const AwaitedActivity&) = delete;
  ~AwaitedActivity() override { --open(question_); }

  [[nodiscard]] static bool is_room_for(const Question& question) {
    return open(question) < (question.session.empty() ? waits_for_all_max : waits_for_one_max);
  }

  void begin(std::function<void()> wake) override {
    {
      const std::lock_guard guard(mutex_);
      wake_ = std::move(wake);
    }
    look();
  }
  [[nodiscard]] std::vector<Piece> drain() override {
    const std::lock_guard guard(mutex_);
    if (!answer_) return {};
    return {std::exchange(answer_, nullptr)};
  }
  [[nodiscard]] BodyState state() const override {
    const std::lock_guard guard(mutex_);
    return answer_ ? BodyState::open : state_;
  }
  [[nodiscard]] bool allowed() override {
    look();
    return !allowed_ || allowed_();
  }
  void hurry() override {
    is_last_ = true;
    look();
  }

 private:
  void look() {
    if (is_looking_.exchange(true)) return;
    backend_.read([self = shared_from_this()](StoreReader& reader) { self->look(reader); },
                  [self = shared_from_this()](const Error&) { self->is_looking_ = false; });
  }
  void look(StoreReader& reader) {
    const auto wall = system_clock().wall();
    const bool is_last = is_last_ || std::chrono::steady_clock::now() >= until_;
    auto found = find(backend_, reader, question_, wall);
    // It was erased meanwhile, so nothing is known of it.
    if (!found && found.error().code == ErrorCode::not_found) found = Found{};
    is_looking_ = false;
    if (!found) return done(BodyState::broken, nullptr);
    if (!is_last && std::ranges::count(question_.until, found->activity) == 0) return;
    done(BodyState::complete, std::make_shared<const std::string>(text_of(*found, wall)));
  }
  void done(BodyState state, Piece answer) {
    std::function<void()> wake;
    {
      const std::lock_guard guard(mutex_);
      if (state_ != BodyState::open) return;
      answer_ = std::move(answer);
      state_ = state;
      wake = wake_;
    }
    if (wake) wake();
  }

  /// How many of its kind wait.
  static std::atomic<int>& open(const Question& question) {
    static std::atomic<int> for_one = 0;
    static std::atomic<int> for_all = 0;
    return question.session.empty() ? for_all : for_one;
  }

  Backend& backend_;
  const Question question_;
  const std::chrono::steady_clock::time_point until_;
  const std::function<bool()> allowed_;
  std::atomic<bool> is_looking_ = false, is_last_ = false;

  mutable std::mutex mutex_;  ///< Guards the rest.
  std::function<void()> wake_;
  Piece answer_;
  BodyState state_ = BodyState::open;
};

Result<Question> question_of(const Call& call) {
  auto filter = filter_of(call.target, 1);
  if (!filter) return filter.error();
  Question question{.session = call.target.text("session"), .filter = std::move(*filter)};
  for (const auto& [name, words] :
       {std::pair{"is", &Question::is}, {"not", &Question::is_not}, {"until", &Question::until}}) {
    auto chosen = call.target.choices<Activity>(name);
    if (!chosen) return chosen.error();
    question.*words = std::move(*chosen);
  }
  const bool is_probe = !question.is.empty() || !question.is_not.empty();
  if (is_probe && !question.until.empty())
    return Error{
        ErrorCode::invalid,
        "`until` waits for a word, and `is` and `not` answer at once. Use one or the other",
        "until"};
  return question;
}

void await(const CallPtr& call, Question question, std::int64_t at_most) {
  if (call->feed == nullptr) {
    return call->reply(
        error_response(503, "unavailable", "only a running monitor tells what happens"));
  }
  if (!AwaitedActivity::is_room_for(question)) {
    auto response = error_response(503, "exhausted", "too many such questions wait; try again");
    response.extra_headers = "Retry-After: 1\r\n";
    return call->reply(std::move(response));
  }
  call->reply({.source = std::make_shared<AwaitedActivity>(
                   call->backend, std::move(question), std::chrono::milliseconds(at_most),
                   call->access.lasting(call->request, Scope::read)),
               .ends = true});
}

/// A probe that looks at the status alone learns from it whether the word is good.
constexpr int other_word_status = 412;

}  // namespace

void get_activity(const CallPtr& call) {
  auto question = question_of(*call);
  if (!question) return call->reply(error_response(question.error()));
  const auto at_most = call->target.number("timeoutMs", wait_ms_max, 0, wait_ms_max);
  if (!at_most) return call->reply(error_response(at_most.error()));
  reading(call, [call, at_most = *at_most, question = std::move(*question)](StoreReader& reader) {
    const auto wall = system_clock().wall();
    const auto found = find(call->backend, reader, question, wall);
    if (!found) return call->reply(error_response(found.error()));
    const bool waits =
        !question.until.empty() && std::ranges::count(question.until, found->activity) == 0;
    if (waits) return await(call, question, at_most);
    const int status = question.is_good(found->activity) ? 200 : other_word_status;
    call->reply({.status = status, .body = text_of(*found, wall)});
  });
}

}  // namespace watchdog::monitor
