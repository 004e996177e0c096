// Commands in a pipeline are sent without waiting, and `receive` reads all their answers behind one
// synchronisation point. The answers of commands without rows are short, and at most `unread_max`
// of them are left unread, so both sides never wait for each other to read. After an error in a
// pipeline the server skips what follows, so a statement may not be prepared: all are prepared
// again.
#include "postgres/connection.h"

#include <cstring>
#include <optional>
#include <utility>

namespace watchdog::monitor {
namespace {

constexpr int unread_max = 400;

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

/// States of the server in which the same transaction may succeed a moment later.
bool is_passing_state(std::string_view state) {
  return state == "40001" || state == "40P01" || state == "55P03" || state == "25P03" ||
         state == "53300" || state.starts_with("57P") || state.starts_with("08") ||
         // Two programs made the same table at once.
         state == "23505" || state == "42P07" || state == "42P06";
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (auto& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

void PgParameters::add(std::string_view bytes, bool is_binary) {
  values.push_back(bytes.empty() ? "" : bytes.data());
  lengths.push_back(static_cast<int>(bytes.size()));
  formats.push_back(is_binary ? 1 : 0);
}

void PgParameters::add_null() {
  values.push_back(nullptr);
  lengths.push_back(0);
  formats.push_back(0);
}

Result<void> PgConnection::check(const std::string& url) {
  char* wrong = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(url.c_str(), &wrong));
  const std::unique_ptr<char, decltype(&PQfreemem)> wrong_owner(wrong, &PQfreemem);
  // The URL is not repeated: it may have a password.
  if (!options) {
    return Error{ErrorCode::invalid,
                 "the database's URL cannot be read. It looks like "
                 "postgresql://USER@HOST:5432/DATABASE, or postgresql:///?service=NAME"};
  }
  return {};
}

PgConnection::PgConnection(std::string url, int busy_max_ms)
    : url_(std::move(url)), busy_max_ms_(busy_max_ms) {}

PgConnection::~PgConnection() {
  PQfinish(connection_);
}

bool PgConnection::is_lost() const noexcept {
  return connection_ == nullptr || PQstatus(connection_) != CONNECTION_OK;
}

bool PgConnection::connect() {
  if (!is_lost()) return false;
  PQfinish(std::exchange(connection_, nullptr));
  ++generation_;
  stale_ = false;
  in_pipeline_ = false;
  unread_ = 0;
  // Options of the URL come later in the list, and count.
  const char* const words[] = {
      "fallback_application_name", "connect_timeout",  "tcp_user_timeout", "keepalives_idle",
      "keepalives_interval",       "keepalives_count", "dbname",           nullptr};
  const char* const values[] = {"watchdog-monitor", "5",    "10000", "10", "5", "3",
                                url_.c_str(),       nullptr};
  connection_ = PQconnectdbParams(words, values, 1);
  if (is_lost()) {
    const auto why = one_line(connection_ != nullptr ? PQerrorMessage(connection_) : "no memory");
    throw SqlFailure{Error{ErrorCode::unavailable, "database " + url_ + ": " + why}, true};
  }
  if (PQserverVersion(connection_) < 130'000) {
    throw SqlFailure{
        Error{ErrorCode::invalid, "database " + url_ + ": PostgreSQL 13 or newer is needed"}};
  }
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  // A writer that is stopped within its turn would stop all others: the server ends its turn.
  // PostgreSQL looks into pg_catalog first where the path does not name it, so nothing in the
  // schema replaces a function of the server.
  run("SET search_path TO watchdog, pg_temp; SET client_encoding TO 'UTF8'; SET "
      "statement_timeout TO 60000; "
      "SET lock_timeout TO 15000; SET idle_in_transaction_session_timeout TO " +
      std::to_string(busy_max_ms_));
  return true;
}

void PgConnection::forget_stale() {
  if (std::exchange(stale_, false) && !is_lost()) run("DEALLOCATE ALL");
}

SqlFailure PgConnection::failure_of(const PGresult* result) {
  const auto field = [&](int which) -> std::string {
    const char* text = result != nullptr ? PQresultErrorField(result, which) : nullptr;
    return text != nullptr ? text : "";
  };
  const auto state = field(PG_DIAG_SQLSTATE);
  // Not the detail, which may quote what was to be stored.
  auto why = field(PG_DIAG_MESSAGE_PRIMARY);
  if (why.empty()) why = one_line(PQerrorMessage(connection_));
  auto code = ErrorCode::unavailable;
  if (state.starts_with("XX00") && state != "XX000") code = ErrorCode::corrupt;
  return {Error{code, "database " + url_ + ": " + why}, is_lost() || is_passing_state(state)};
}

void PgConnection::fail(const PGresult* result) {
  throw failure_of(result);
}

ResultPtr PgConnection::checked(PGresult* result) {
  ResultPtr owned(result);
  const auto status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(result);
  return owned;
}

ResultPtr PgConnection::run(const std::string& sql) {
  return checked(PQexec(connection_, sql.c_str()));
}

ResultPtr PgConnection::run_prepared(const std::string& name, const PgParameters& parameters) {
  return checked(PQexecPrepared(
      connection_, name.c_str(), static_cast<int>(parameters.values.size()),
      parameters.values.data(), parameters.lengths.data(), parameters.formats.data(), 1));
}

void PgConnection::prepare(const std::string& name, const std::string& sql) {
  checked(PQprepare(connection_, name.c_str(), sql.c_str(), 0, nullptr));
}

void PgConnection::begin_pipeline() {
  if (PQenterPipelineMode(connection_) != 1) fail(nullptr);
  in_pipeline_ = true;
}

void PgConnection::end_pipeline() noexcept {
  if (!in_pipeline_) return;
  try {
    if (unread_ > 0 && !is_lost()) receive();
  } catch (const SqlFailure&) {  // nobody waits for it
  }
  in_pipeline_ = false;
  if (!is_lost() && PQexitPipelineMode(connection_) != 1) {
    PQfinish(std::exchange(connection_, nullptr));  // its state is unknown
  }
}

void PgConnection::make_room() {
  if (unread_ >= unread_max) receive();
}

void PgConnection::sent(int code) {
  if (code != 1) fail(nullptr);
  ++unread_;
}

void PgConnection::send(const std::string& sql) {
  make_room();
  sent(PQsendQueryParams(connection_, sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 1));
}

void PgConnection::send_prepare(const std::string& name, const std::string& sql) {
  make_room();
  sent(PQsendPrepare(connection_, name.c_str(), sql.c_str(), 0, nullptr));
}

void PgConnection::send_prepared(const std::string& name, const PgParameters& parameters) {
  make_room();
  sent(PQsendQueryPrepared(connection_, name.c_str(), static_cast<int>(parameters.values.size()),
                           parameters.values.data(), parameters.lengths.data(),
                           parameters.formats.data(), 1));
}

ResultPtr PgConnection::receive() {
  unread_ = 0;
  if (PQpipelineSync(connection_) != 1) fail(nullptr);
  ResultPtr last;
  std::optional<SqlFailure> failure;
  for (int nothing = 0; nothing < 2;) {
    ResultPtr result(PQgetResult(connection_));
    if (!result) {
      ++nothing;
      if (is_lost()) break;
      continue;
    }
    nothing = 0;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      last = std::move(result);
    } else if (!failure && status != PGRES_PIPELINE_ABORTED) {
      failure = failure_of(result.get());
    }
  }
  if (failure) {
    ++generation_;
    stale_ = true;
    failure->is_passing = failure->is_passing || is_lost();
    throw std::move(*failure);
  }
  if (is_lost()) fail(nullptr);
  return last;
}

}  // namespace watchdog::monitor
