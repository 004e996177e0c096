/// \file
/// The newest events and changes of health for listeners, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {

/// A place in a stream: everything up to this event and this transition. Both only grow, and both
/// are in the file: a cursor outlives the monitor. A plain value.
struct Cursor {
  Seq seq = 0;
  std::int64_t transition = 0;

  /// `SEQ.TRANSITION`
  [[nodiscard]] std::string text() const;
  /// Returns nothing if the text is not a cursor.
  [[nodiscard]] static std::optional<Cursor> parse(std::string_view text);
  bool operator==(const Cursor&) const = default;
};

/// One thing that happened, as it goes over the wire. A plain value.
struct Record {
  enum class Kind : std::uint8_t { event, transition, session, summary };
  Kind kind = Kind::event;
  SessionKey session = observer_key;
  Cursor cursor;  ///< The cursor after this record.
  std::string text;
};
using RecordPtr = std::shared_ptr<const Record>;

/// `event: …`, `id: …`, `data: …`; without a cursor there is no id.
[[nodiscard]] std::string sse_record(std::string_view kind, const std::optional<Cursor>& cursor,
                                     std::string_view data);
[[nodiscard]] Record record_of(const Event& event, std::string_view session, Cursor before);
[[nodiscard]] Record record_of(const TransitionRow& row, std::string_view session, Cursor before);

/// Keeps the newest records, each made once for all listeners; none without listeners. A listener
/// that falls behind reads the file. Thread-safe.
class Feed {
 public:
  static constexpr std::size_t records_max = 8'192;
  static constexpr std::size_t bytes_max = 8 * 1024 * 1024;
  static constexpr std::size_t listeners_max = 512;
  class Listener;

  Feed();
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Called by the judge's thread:
  void event(const Event& event, std::string_view session);
  void transition(const TransitionRow& row, std::string_view session);
  /// A session that has no event yet.
  void created(std::string_view session) { touched(session); }
  /// A session looks otherwise, although it has no new event. From any thread.
  void touched(std::string_view session);
  /// The next record follows the cursor.
  void restart(Cursor cursor);
  /// Wakes the listeners if there is something new.
  void flush();

  // Session rows do not follow each event; a caller asks now and then which ones changed.
  enum class Pending : std::uint8_t { none, some, urgent };
  /// Returns whether sessions changed since they were drained; urgent: their health or lifecycle
  /// did.
  [[nodiscard]] Pending pending() const;
  [[nodiscard]] std::vector<std::string> drain_changed();
  void session(SessionKey key, std::string_view data);
  /// How many sessions there are of each state; sent only where it differs from the one before.
  void summary(std::string_view data);

  /// Returns a listener at the feed's present place. `wake` may be called from any thread until the
  /// listener is destroyed, and must not block. Null if there are too many.
  [[nodiscard]] std::shared_ptr<Listener> listen(std::function<void()> wake);

  [[nodiscard]] std::size_t listeners() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A place in the feed. Use from one thread at a time.
class Feed::Listener {
 public:
  Listener(std::shared_ptr<State> state, std::function<void()> wake);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Returns the feed's place when this began to listen.
  [[nodiscard]] Cursor began() const { return began_; }
  /// Goes to a place from which nothing after the cursor is missed; some before it may come again.
  /// False if the feed does not go back so far.
  [[nodiscard]] bool seek(Cursor cursor);
  /// Drains the next records, at most `count_max`. Returns false if the listener fell behind.
  [[nodiscard]] bool drain(std::vector<RecordPtr>& into, std::size_t count_max);
  void wake() const { wake_(); }

 private:
  std::shared_ptr<State> state_;
  std::function<void()> wake_;
  std::uint64_t next_ = 0;
  Cursor began_;
};

}  // namespace watchdog::monitor
