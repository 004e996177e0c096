/// \file
/// A database server on which a store can stand instead of an SQLite file. The store asks it for
/// turns, statements and days; the monitor brings the implementation, and agents need none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Thrown inside the store folder and by servers; caught where the store's public functions end.
struct SqlFailure {
  Error error;
  bool is_passing = false;  ///< The same transaction may succeed when it is tried again.
};

/// How often a transaction is tried again, and the first pause; each is twice as long.
inline constexpr int server_tries_max = 4;
inline constexpr std::chrono::milliseconds server_pause{20};

/// A prepared statement on a server. Parameters are written `?` or `?N`, and counted from 1. Texts
/// must live until the next `step` or `run`. Functions throw SqlFailure.
class ServerStatement {
 public:
  ServerStatement() = default;
  ServerStatement(const ServerStatement&) = delete;
  ServerStatement& operator=(const ServerStatement&) = delete;
  virtual ~ServerStatement() = default;

  /// Drops the rows; the parameters stay.
  virtual void reset() noexcept = 0;
  virtual void bind(int at, std::int64_t number) = 0;
  virtual void bind(int at, std::string_view text) = 0;
  virtual void bind_bytes(int at, std::string_view bytes) = 0;
  virtual void bind_null(int at) = 0;
  /// For `= ANY(?)`.
  virtual void bind_texts(int at, std::span<const std::string_view> texts) = 0;
  virtual void bind_numbers(int at, std::span<const std::int64_t> numbers) = 0;

  /// Runs it at the first call; true while there is a row.
  virtual bool step() = 0;
  /// Runs it without rows. In a turn it may be sent with later statements, and its error may come
  /// from a later call.
  virtual void run() = 0;

  // Of the present row. A truth value is 0 or 1, and NULL is 0 or empty.
  [[nodiscard]] virtual std::int64_t integer(int column) const = 0;
  [[nodiscard]] virtual std::string_view bytes(int column) const = 0;
  [[nodiscard]] virtual bool is_null(int column) const = 0;
};

/// The time of leases and ticks: it follows a clock that somebody may set, and never goes back.
struct SteadyLine {
  Millis latest{};
  Millis ahead{};  ///< Of the clock.
  Millis advance(Millis clock) noexcept {
    ahead = std::max(ahead, latest - clock);
    return latest = clock + ahead;
  }
};

/// The state that a writer finds when its turn begins.
struct ServerTurn {
  std::int64_t number = 0;      ///< Rises with each turn of any writer that changed something.
  std::int64_t own_number = 0;  ///< Of the newest such turn of this writer.
  Seq next_seq = 1;             ///< The first that is free.
  Instant last_tick{};          ///< The latest that was given out.
  Millis clock{};               ///< The server's time line: its clock, but it never goes back.
  Millis wall{};                ///< The server's clock, since 1970.
  Millis passed{};              ///< On the time line, since the newest turn that changed something.
  bool server_came_back = false;  ///< The connection was lost since the last turn.
};

/// The state that a writer leaves for the next one.
struct ServerTurnEnd {
  Seq next_seq = 1;
  Instant last_tick{};
  /// False: what was stored may be lost if the server's machine fails within the next second.
  bool durable = true;
};

/// A connection to a database server. A writer connects again by itself, and waits up to a second
/// for that. Functions throw SqlFailure, which says whether trying again may help. Use from one
/// thread at a time.
class StoreServer {
 public:
  StoreServer() = default;
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  virtual ~StoreServer() = default;

  /// Creates the tables if there are none, and brings older ones up to date.
  virtual void prepare_tables() = 0;
  /// Checks that the tables can be read by this program.
  virtual void check_tables() = 0;
  [[nodiscard]] virtual std::unique_ptr<ServerStatement> prepare(std::string_view sql) = 0;

  /// One unchanging view for all statements until the end. Nested views and views in a turn are
  /// parts of the outer one.
  virtual void begin_view() = 0;
  virtual void end_view() noexcept = 0;

  /// Waits for the turns of other writers. All statements until its end are one transaction.
  [[nodiscard]] virtual ServerTurn begin_turn() = 0;
  /// Commits. Returns true if the turn changed anything and so has the next number.
  virtual bool end_turn(const ServerTurnEnd& end) = 0;
  /// Rolls back.
  virtual void drop_turn() noexcept = 0;

  /// The server's time line.
  [[nodiscard]] virtual Millis clock() = 0;
  /// Bytes of all tables; may be some seconds old.
  [[nodiscard]] virtual std::int64_t bytes() = 0;

  // Events are in parts, one a day. Numbers of events begin again with each, far above all before.
  /// Returns the first number at or above `next` that is in the part for `tick`, and makes that
  /// part. Needs a turn.
  [[nodiscard]] virtual Seq first_seq_for(Instant tick, Seq next) = 0;
  /// Makes the part of an event that has a number already. Needs a turn.
  virtual void make_part_of(Seq seq) = 0;
  /// Returns the first event number after the oldest part, if that is not the one of `next`.
  [[nodiscard]] virtual std::optional<Seq> end_of_oldest_part(Seq next) = 0;
  /// Drops the parts below `end`. Needs a turn.
  virtual void drop_parts_before(Seq end) = 0;
  /// After rows with given keys were inserted: new keys rise above them and above `last`. Needs a
  /// turn.
  virtual void raise_key(std::string_view table, std::int64_t last) = 0;
};

/// Text without bytes that servers refuse: a NUL or what is no UTF-8 becomes U+FFFD. `own` holds
/// the result if the text had to change.
[[nodiscard]] std::string_view storable(std::string_view text, std::string& own);

/// Returns true if this names a database on a server: `postgresql://...` or `postgres://...`.
[[nodiscard]] bool is_server_url(const std::filesystem::path& database);

/// Refuses a URL with a password: `ps`, logs and messages would show it. Anything else is not
/// looked at. Errors: `invalid`; the message does not repeat the URL.
[[nodiscard]] Result<void> check_database_url(const std::filesystem::path& database);

/// Returns the folder for files that belong to a database. That is its own folder, or the one of
/// this user's state if the database is on a server.
[[nodiscard]] std::filesystem::path folder_beside(const std::filesystem::path& database);

/// Connects to the database of a URL. `write`: to append to it, too.
using OpenServer = Result<std::unique_ptr<StoreServer>> (*)(const std::string& url, bool write);

/// Sets how servers are reached in this process. Before that, their URLs are refused.
void use_servers(OpenServer open) noexcept;

/// Errors: `invalid` (this program knows no servers, or a wrong URL), `unavailable`.
[[nodiscard]] Result<std::unique_ptr<StoreServer>> open_server(const std::filesystem::path& url,
                                                               bool write);

}  // namespace watchdog
