/// \file
/// PostgreSQL as the server of a store.
#pragma once

#include <chrono>
#include <set>

#include "postgres/statement.h"

namespace watchdog::monitor {

class PgServer final : public StoreServer {
 public:
  /// REQUIRES: a checked URL.
  PgServer(std::string url, bool write);
  ~PgServer() override;

  /// Connects. Throws SqlFailure.
  void connect() { connection_.connect(); }
  void prepare_tables() override;
  void check_tables() override;
  [[nodiscard]] std::unique_ptr<ServerStatement> prepare(std::string_view sql) override;
  void begin_view() override;
  void end_view() noexcept override;
  [[nodiscard]] ServerTurn begin_turn() override;
  bool end_turn(const ServerTurnEnd& end) override;
  void drop_turn() noexcept override;
  [[nodiscard]] Millis clock() override;
  [[nodiscard]] std::int64_t bytes() override;
  [[nodiscard]] Seq first_seq_for(Instant tick, Seq next) override;
  void make_part_of(Seq seq) override;
  [[nodiscard]] std::optional<Seq> end_of_oldest_part(Seq next) override;
  void drop_parts_before(Seq end) override;
  void raise_key(std::string_view table, std::int64_t last) override;

 private:
  [[nodiscard]] std::int64_t version();
  void refuse_version(std::int64_t version, ErrorCode code = ErrorCode::conflict) const;
  void refuse_foreign_schema();
  void bring_up_to_date();
  [[nodiscard]] ServerTurn lock_turn();
  void make_part(std::int64_t part);
  [[nodiscard]] std::int64_t number(const std::string& sql);

  PgConnection connection_;
  PgSession session_;
  std::string writer_;
  bool came_back_ = true;  ///< Connected since the last turn.
  std::set<std::int64_t> parts_;
  SteadyLine line_;  ///< When the turn began.
  std::int64_t bytes_ = 0;
  std::chrono::steady_clock::time_point bytes_until_{};
  std::unique_ptr<PgStatement> own_number_, end_, sign_;
};

}  // namespace watchdog::monitor
