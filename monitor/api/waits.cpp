// One listener of the feed serves all waits. A wake of the feed posts a turn to the thread that
// reads lists. A turn takes the records and queues the waits of their sessions; a few are looked at
// in each turn, so that other reads come in between. While looks have taken more than their share
// of the time, no records are taken. Such a change is not lost: the feed wakes again for the
// session's row, and each wait asks for a turn once a second.
#include "api/waits.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "api/long_poll.h"
#include "store/event_reader.h"
#include "wait/account.h"

namespace watchdog::monitor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t looks_at_once = 32;
constexpr std::size_t wait_records_at_once = 512;
/// Looks take a twentieth of the reading thread's time, and a little more at a time.
constexpr int looks_share = 20;
constexpr std::chrono::milliseconds debt_max{20};

void write_entries(JsonWriter& out, std::string_view name,
                   const std::vector<TimelineEntry>& entries) {
  out.key(name).open_array();
  for (const auto& entry : entries) {
    out.open_object().field("at", entry.at.time_since_epoch().count());
    out.field("text", entry.text).close_object();
  }
  out.close_array();
}

class WaitBody;

/// The common part of the waits of a feed. Records are taken on the reading thread alone.
class WaitBoard : public std::enable_shared_from_this<WaitBoard> {
 public:
  WaitBoard(Backend& backend, Feed& feed) : backend_(backend), feed_(feed) {}

  bool enter();
  void leave();
  void add(const std::shared_ptr<WaitBody>& body);
  /// The body is looked at soon.
  void queue(const std::shared_ptr<WaitBody>& body);
  /// A turn, unless one is coming anyway. From any thread; does not block.
  void wake();
  Backend& backend() { return backend_; }

 private:
  void turn(StoreReader& reader);
  [[nodiscard]] bool is_idle();
  void queue_changed();
  [[nodiscard]] std::shared_ptr<Feed::Listener> listen();

  Backend& backend_;
  Feed& feed_;
  std::atomic<bool> is_coming_ = false;

  std::mutex mutex_;  ///< Guards what follows.
  std::shared_ptr<Feed::Listener> listener_;
  std::size_t open_ = 0;
  std::vector<std::weak_ptr<WaitBody>> bodies_;
  std::deque<std::weak_ptr<WaitBody>> queue_;

  // Of the reading thread:
  SteadyTime::duration debt_{};  ///< The time that looks took beyond their share,
  SteadyTime counted_{};         ///< at this instant.
};

/// One wait.
class WaitBody final : public LongPoll, public std::enable_shared_from_this<WaitBody> {
 public:
  WaitBody(std::shared_ptr<WaitBoard> board, WaitRequest request)
      : board_(std::move(board)),
        until_(std::chrono::steady_clock::now() + request.at_most),
        tells_(request.shows),
        allowed_(std::move(request.allowed)),
        look_(std::move(request.question)) {
    is_last_ = tells_ == WaitTells::now || request.at_most.count() == 0;
  }
  ~WaitBody() override { board_->leave(); }

  void begin(std::function<void()> wake) override {
    wake_ = std::move(wake);
    board_->add(shared_from_this());
  }
  [[nodiscard]] std::vector<Piece> drain() override {
    const std::lock_guard guard(mutex_);
    std::vector<Piece> pieces;
    if (answer_) pieces.push_back(std::exchange(answer_, nullptr));
    return pieces;
  }
  [[nodiscard]] BodyState state() const override {
    const std::lock_guard guard(mutex_);
    return answer_ ? BodyState::open : state_;
  }
  [[nodiscard]] bool allowed() override {
    if (std::chrono::steady_clock::now() >= until_) {
      hurry();
    } else {
      board_->wake();
    }
    return !allowed_ || allowed_();
  }
  void hurry() override {
    if (!is_last_.exchange(true)) board_->queue(shared_from_this());
  }

  // Of the reading thread:
  [[nodiscard]] SessionKey key() const { return look_.key(); }
  [[nodiscard]] bool is_there() const { return look_.watched().has_value(); }
  /// Returns true if it is to be looked at again at once.
  [[nodiscard]] bool look(StoreReader& reader);
  std::atomic<bool> is_queued = false;

 private:
  Result<bool> look_further(StoreReader& reader);
  Result<void> begin_timeline(StoreReader& reader);
  Result<std::string> answer(Backend& backend);
  void done(BodyState state, Piece answer);

  const std::shared_ptr<WaitBoard> board_;
  const SteadyTime until_;
  const WaitTells tells_;
  const std::function<bool()> allowed_;
  std::function<void()> wake_;
  std::atomic<bool> is_last_ = false;  ///< The next look gives the answer.

  WaitLook look_;
  std::optional<TimelineMaker> maker_;
  Seq told_ = 0;  ///< Events up to this one are in the timeline.

  mutable std::mutex mutex_;  ///< Guards the rest.
  Piece answer_;
  BodyState state_ = BodyState::open;
};

bool WaitBoard::enter() {
  const std::lock_guard guard(mutex_);
  if (open_ + feed_.listeners() >= waits_max) return false;
  if (!listener_) listener_ = listen();
  if (!listener_) return false;
  ++open_;
  return true;
}

std::shared_ptr<Feed::Listener> WaitBoard::listen() {
  return feed_.listen([weak = weak_from_this()] {
    if (const auto board = weak.lock()) board->wake();
  });
}

void WaitBoard::leave() {
  std::shared_ptr<Feed::Listener> last;  // destroyed without the lock
  const std::lock_guard guard(mutex_);
  if (--open_ == 0) last.swap(listener_);
}

void WaitBoard::add(const std::shared_ptr<WaitBody>& body) {
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(bodies_, [](const auto& other) { return other.expired(); });
    bodies_.push_back(body);
  }
  queue(body);
}

void WaitBoard::queue(const std::shared_ptr<WaitBody>& body) {
  if (!body->is_queued.exchange(true)) {
    const std::lock_guard guard(mutex_);
    queue_.push_back(body);
  }
  wake();
}

void WaitBoard::wake() {
  if (is_coming_.exchange(true)) return;
  backend_.read([self = shared_from_this()](StoreReader& reader) { self->turn(reader); },
                [self = shared_from_this()](const Error&) { self->is_coming_ = false; });
}

void WaitBoard::turn(StoreReader& reader) {
  is_coming_ = false;
  const auto begun = std::chrono::steady_clock::now();
  debt_ -= std::min(debt_, (begun - counted_) / looks_share);
  counted_ = begun;
  if (is_idle() && debt_ < debt_max) queue_changed();
  std::vector<std::weak_ptr<WaitBody>> bodies;
  {
    const std::lock_guard guard(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), looks_at_once));
    bodies.assign(queue_.begin(), queue_.begin() + count);
    queue_.erase(queue_.begin(), queue_.begin() + count);
  }
  for (const auto& weak : bodies) {
    const auto body = weak.lock();
    if (!body) continue;
    body->is_queued = false;
    if (body->look(reader)) queue(body);
  }
  if (bodies.empty()) return;
  debt_ += std::chrono::steady_clock::now() - begun;
  if (!is_idle()) wake();
}

bool WaitBoard::is_idle() {
  const std::lock_guard guard(mutex_);
  return queue_.empty();
}

/// Queues the waits of the sessions that have records since the last time.
void WaitBoard::queue_changed() {
  std::vector<std::weak_ptr<WaitBody>> bodies;
  std::shared_ptr<Feed::Listener> listener;
  {
    const std::lock_guard guard(mutex_);
    bodies = bodies_;
    listener = listener_;
  }
  if (!listener) return;
  std::unordered_set<SessionKey> changed;
  bool rows = false;
  std::vector<RecordPtr> records;
  bool is_behind = false;
  while (!is_behind) {
    is_behind = !listener->drain(records, wait_records_at_once);
    if (records.empty()) break;
    for (const auto& record : records) {
      changed.insert(record->session);
      rows |= record->kind == Record::Kind::session;
    }
  }
  if (is_behind) {
    auto next = listen();
    const std::lock_guard guard(mutex_);
    if (next && listener_) listener_.swap(next);
  }
  if (changed.empty() && !is_behind) return;
  for (const auto& weak : bodies) {
    const auto body = weak.lock();
    if (!body) continue;
    if (is_behind || changed.contains(body->key()) || (rows && !body->is_there())) queue(body);
  }
}

bool WaitBody::look(StoreReader& reader) {
  {
    const std::lock_guard guard(mutex_);
    if (state_ != BodyState::open) return false;
  }
  const auto further = look_further(reader);
  if (!further) done(BodyState::broken, nullptr);
  return further && *further;
}

Result<bool> WaitBody::look_further(StoreReader& reader) {
  const bool is_last = is_last_;
  if (!maker_) {
    const auto looked = look_.look(board_->backend(), reader);
    if (!looked) return looked.error();
    if (!*looked) return true;
    const bool news = tells_ == WaitTells::changes && look_.has_news();
    if (!look_.is_over() && !news && !is_last) return false;
    const bool explains = look_.end() || tells_ == WaitTells::now;
    if (explains && look_.watched()) {
      if (auto begun = begin_timeline(reader); !begun) return begun.error();
    }
  }
  if (maker_) {
    const auto page =
        EventReader(reader).page(look_.key(), told_, static_cast<int>(wait_records_at_once));
    if (!page) return page.error();
    for (const auto& event : page->events) maker_->add(event);
    if (page->next) {
      told_ = *page->next;
      return true;
    }
  }
  auto text = answer(board_->backend());
  if (!text) return text.error();
  done(BodyState::complete, std::make_shared<const std::string>(std::move(*text)));
  return false;
}

Result<void> WaitBody::begin_timeline(StoreReader& reader) {
  auto changes = changes_of(reader, look_.key());
  if (!changes) return changes.error();
  maker_.emplace(std::move(*changes));
  return {};
}

Result<std::string> WaitBody::answer(Backend& backend) {
  const auto& question = look_.question();
  JsonWriter out;
  out.open_object().field("sessionId", question.session);
  out.field("for", text_of(question.awaited)).field("came", look_.came()).key("end");
  look_.end() ? out.value(name_of(*look_.end())) : out.value(nullptr);
  out.key("why");
  look_.why().empty() ? out.value(nullptr) : out.value(look_.why());
  out.field("cursor", look_.place().text()).key("progress");
  const auto& watched = look_.watched();
  if (watched) {
    const auto document = document_of(backend, question.session, *watched);
    if (!document) return document.error();
    out.raw(*document).field("last", lifecycle_text(watched->judged));
  } else {
    out.value(nullptr).field("last", nullptr);
  }
  out.key("timeline");
  if (maker_) {
    const auto timeline = maker_->finish();
    out.open_object().field("omitted", timeline.omitted).field("heartbeats", timeline.heartbeats);
    write_entries(out, "first", timeline.first);
    write_entries(out, "last", timeline.last);
    out.close_object();
  } else {
    out.value(nullptr);
  }
  out.close_object();
  return out.finish();
}

void WaitBody::done(BodyState state, Piece answer) {
  {
    const std::lock_guard guard(mutex_);
    answer_ = std::move(answer);
    state_ = state;
  }
  wake_();
}

/// The board of a feed, while anybody waits there.
std::shared_ptr<WaitBoard> board_of(Backend& backend, Feed& feed) {
  static std::mutex mutex;
  static std::map<const Feed*, std::weak_ptr<WaitBoard>> boards;
  const std::lock_guard guard(mutex);
  std::erase_if(boards, [](const auto& entry) { return entry.second.expired(); });
  auto& known = boards[&feed];
  auto board = known.lock();
  if (!board) known = board = std::make_shared<WaitBoard>(backend, feed);
  return board;
}

}  // namespace

std::shared_ptr<BodySource> open_wait(Backend& backend, Feed& feed, WaitRequest request) {
  auto board = board_of(backend, feed);
  if (!board->enter()) return nullptr;
  return std::make_shared<WaitBody>(std::move(board), std::move(request));
}

}  // namespace watchdog::monitor
