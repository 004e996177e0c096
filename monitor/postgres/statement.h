/// \file
/// Prepared statements on PostgreSQL, and rows of events and heads that are inserted many at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "postgres/connection.h"
#include "store/server.h"

namespace watchdog::monitor {

class PgBulk;

/// The connection of a server, and what a turn on it has done so far.
struct PgSession {
  PgConnection& connection;
  bool in_turn = false;
  int views = 0;
  bool wrote = false;            ///< In this turn.
  std::vector<PgBulk*> bulks{};  ///< May have rows that were not sent.
  std::int64_t statements = 0;   ///< Made so far.
  /// Prepared, and no longer used. The next statement frees them in the server.
  std::vector<std::string> unused{};
  std::int64_t unused_of = 0;  ///< The generation of the connection that they belong to.
  void send_rows();
  void drop_rows() noexcept;
  /// Remembers what a statement prepared before it was destroyed.
  void leave(std::string name, std::int64_t prepared_in) noexcept;
  /// Frees what `leave` remembered.
  void free_unused();
};

/// Question marks become `$N`.
[[nodiscard]] std::string numbered(std::string_view sql);

class PgStatement final : public ServerStatement {
 public:
  PgStatement(PgSession& session, std::string_view sql);
  ~PgStatement() override;
  PgStatement(const PgStatement&) = delete;
  PgStatement& operator=(const PgStatement&) = delete;

  void reset() noexcept override;
  void bind(int at, std::int64_t number) override;
  void bind(int at, std::string_view text) override;
  void bind_bytes(int at, std::string_view bytes) override;
  void bind_null(int at) override;
  void bind_texts(int at, std::span<const std::string_view> texts) override;
  void bind_numbers(int at, std::span<const std::int64_t> numbers) override;
  bool step() override;
  void run() override;
  [[nodiscard]] std::int64_t integer(int column) const override;
  [[nodiscard]] std::string_view bytes(int column) const override;
  [[nodiscard]] bool is_null(int column) const override;

 private:
  struct Parameter {
    bool is_null = true;
    bool is_binary = false;
    std::string_view view{};
    std::string own{};  ///< If it is not empty, this is the value: others move when one is added.
  };
  Parameter& parameter(int at);
  [[nodiscard]] PgParameters parameters() const;
  void send_it();
  void run_now();

  PgSession& session_;
  std::string sql_;
  std::string id_;
  bool writes_;
  bool reads_rows_;  ///< Of tables with rows that may not be sent yet.
  std::int64_t prepared_in_ = 0;
  std::string name_;
  std::vector<Parameter> parameters_;
  ResultPtr rows_;
  int row_ = -1;
};

/// Inserts rows of one table together, from arrays. They are sent before a statement that may read
/// them, and at the end of the turn.
class PgBulk final : public ServerStatement {
 public:
  enum class Type : char { number = 'b', text = 't', bytes = 'y' };
  /// Null: the statement is of another kind.
  [[nodiscard]] static std::unique_ptr<PgBulk> of(PgSession& session, std::string_view sql);
  PgBulk(PgSession& session, std::string sql, std::vector<Type> types, bool is_once);
  ~PgBulk() override;

  void reset() noexcept override {}
  void bind(int at, std::int64_t number) override;
  void bind(int at, std::string_view text) override;
  void bind_bytes(int at, std::string_view bytes) override;
  void bind_null(int at) override;
  void bind_texts(int at, std::span<const std::string_view> texts) override;
  void bind_numbers(int at, std::span<const std::int64_t> numbers) override;
  bool step() override;
  void run() override;
  [[nodiscard]] std::int64_t integer(int) const override { return 0; }
  [[nodiscard]] std::string_view bytes(int) const override { return {}; }
  [[nodiscard]] bool is_null(int) const override { return true; }

  void send_rows();
  void drop_rows() noexcept;

 private:
  struct Column {
    std::string cells{};  ///< As an array has them: length and bytes.
    std::string next{};   ///< Of the row under way, likewise.
    bool has_null = false;
    bool next_null = true;
  };
  [[nodiscard]] std::string array_of(const Column& column, Type type) const;

  PgSession& session_;
  std::string sql_;
  std::string id_;
  std::vector<Type> types_;
  std::vector<Column> columns_;
  bool is_once_;  ///< A key may be in one insertion only once.
  std::unordered_set<std::int64_t> keys_;
  std::int64_t key_ = 0;
  std::int32_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::int64_t prepared_in_ = 0;
  std::string name_;
};

}  // namespace watchdog::monitor
