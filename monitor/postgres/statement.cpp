// Parameters: numbers as text, so that the server takes the column's type; texts and bytes as they
// are. Results are binary. In a turn statements without rows are only sent. Rows of `events` and
// `heads` gather in arrays, one for each column.
#include "postgres/statement.h"

#include <endian.h>

#include <cstring>

#include "store/event_row.h"

namespace watchdog::monitor {
namespace {

// Numbers of types, which never change.
constexpr Oid oid_bool = 16;
constexpr Oid oid_bytes = 17;
constexpr Oid oid_int8 = 20;
constexpr Oid oid_int2 = 21;
constexpr Oid oid_int4 = 23;
constexpr Oid oid_text = 25;

constexpr std::int32_t rows_max = 1'000;
constexpr std::size_t row_bytes_max = 1'000'000;

template <class Number>
void append_number(std::string& out, Number number) {
  char bytes[sizeof number];
  if constexpr (sizeof number == 8) {
    const auto big = htobe64(static_cast<std::uint64_t>(number));
    std::memcpy(bytes, &big, sizeof big);
  } else {
    const auto big = htobe32(static_cast<std::uint32_t>(number));
    std::memcpy(bytes, &big, sizeof big);
  }
  out.append(bytes, sizeof bytes);
}

void append_cell(std::string& out, std::string_view bytes) {
  append_number(out, static_cast<std::int32_t>(bytes.size()));
  out.append(bytes);
}

std::string array_head(Oid type, std::size_t count, bool has_null) {
  std::string out;
  append_number(out, std::int32_t{count == 0 ? 0 : 1});
  append_number(out, std::int32_t{has_null ? 1 : 0});
  append_number(out, static_cast<std::int32_t>(type));
  if (count == 0) return out;
  append_number(out, static_cast<std::int32_t>(count));
  append_number(out, std::int32_t{1});
  return out;
}

bool mentions_rows(std::string_view sql) {
  return sql.find("events") != sql.npos || sql.find("heads") != sql.npos;
}

}  // namespace

std::string numbered(std::string_view sql) {
  std::string out;
  int next = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < sql.size(); ++at) {
    const char c = sql[at];
    if (c == '\'') quoted = !quoted;
    if (c != '?' || quoted) {
      out += c;
      continue;
    }
    out += '$';
    if (at + 1 < sql.size() && sql[at + 1] >= '1' && sql[at + 1] <= '9') continue;  // ?N
    out += std::to_string(++next);
  }
  return out;
}

void PgSession::send_rows() {
  for (auto* bulk : bulks) bulk->send_rows();
}
void PgSession::drop_rows() noexcept {
  for (auto* bulk : bulks) bulk->drop_rows();
}

void PgSession::leave(std::string name, std::int64_t prepared_in) noexcept {
  if (name.empty() || prepared_in != connection.generation()) return;  // forgotten with the rest
  if (std::exchange(unused_of, prepared_in) != prepared_in) unused.clear();
  try {
    unused.push_back(std::move(name));
  } catch (const std::bad_alloc&) {  // it stays until the connection ends
  }
}

void PgSession::free_unused() {
  const auto names = std::exchange(unused, {});
  if (unused_of != connection.generation()) return;
  for (const auto& name : names) {
    if (in_turn) {
      connection.send("DEALLOCATE " + name);
    } else {
      connection.run("DEALLOCATE " + name);
    }
  }
}

PgStatement::~PgStatement() {
  session_.leave(std::move(name_), prepared_in_);
}

PgStatement::PgStatement(PgSession& session, std::string_view sql)
    : session_(session),
      sql_(numbered(sql)),
      id_("s" + std::to_string(++session.statements) + "_"),
      writes_(sql.starts_with("INSERT") || sql.starts_with("UPDATE") || sql.starts_with("DELETE")),
      reads_rows_(mentions_rows(sql)) {}

void PgStatement::reset() noexcept {
  rows_.reset();
  row_ = -1;
}

PgStatement::Parameter& PgStatement::parameter(int at) {
  if (parameters_.size() < static_cast<std::size_t>(at))
    parameters_.resize(static_cast<std::size_t>(at));
  return parameters_[static_cast<std::size_t>(at) - 1];
}

void PgStatement::bind(int at, std::int64_t number) {
  auto& into = parameter(at);
  into.own = std::to_string(number);
  into.is_null = into.is_binary = false;
}
void PgStatement::bind(int at, std::string_view text) {
  auto& into = parameter(at);
  into.own.clear();
  into.view = storable(text, into.own);
  into.is_null = false;
  into.is_binary = true;
}
void PgStatement::bind_bytes(int at, std::string_view bytes) {
  auto& into = parameter(at);
  into.own.clear();
  into.view = bytes;
  into.is_null = false;
  into.is_binary = true;
}
void PgStatement::bind_null(int at) {
  parameter(at).is_null = true;
}
void PgStatement::bind_texts(int at, std::span<const std::string_view> texts) {
  auto& into = parameter(at);
  std::string array = array_head(oid_text, texts.size(), false);
  std::string own;
  for (const auto text : texts) append_cell(array, storable(text, own));
  into.own = std::move(array);
  into.is_null = false;
  into.is_binary = true;
}
void PgStatement::bind_numbers(int at, std::span<const std::int64_t> numbers) {
  auto& into = parameter(at);
  into.own = array_head(oid_int8, numbers.size(), false);
  for (const auto number : numbers) {
    append_number(into.own, std::int32_t{8});
    append_number(into.own, number);
  }
  into.is_null = false;
  into.is_binary = true;
}

PgParameters PgStatement::parameters() const {
  PgParameters all;
  for (const auto& parameter : parameters_) {
    if (parameter.is_null) {
      all.add_null();
    } else {
      all.add(parameter.own.empty() ? parameter.view : parameter.own, parameter.is_binary);
    }
  }
  return all;
}

/// REQUIRES: a turn.
void PgStatement::send_it() {
  auto& connection = session_.connection;
  if (reads_rows_) session_.send_rows();
  if (prepared_in_ != connection.generation()) {
    session_.free_unused();
    name_ = id_ + std::to_string(connection.generation());
    connection.send_prepare(name_, sql_);
    prepared_in_ = connection.generation();
  }
  connection.send_prepared(name_, parameters());
  session_.wrote = session_.wrote || writes_;
}

void PgStatement::run_now() {
  auto& connection = session_.connection;
  if (prepared_in_ != connection.generation()) {
    session_.free_unused();
    name_ = id_ + std::to_string(connection.generation());
    connection.prepare(name_, sql_);
    prepared_in_ = connection.generation();
  }
  rows_ = connection.run_prepared(name_, parameters());
}

bool PgStatement::step() {
  if (!rows_) {
    auto& connection = session_.connection;
    if (session_.in_turn) {
      send_it();
      rows_ = connection.receive();
    } else if (session_.views > 0) {
      run_now();
    } else {
      connection.connect();
      try {
        run_now();
      } catch (const SqlFailure&) {
        if (!connection.is_lost()) throw;
        connection.connect();  // the server was restarted since the last question
        run_now();
      }
    }
    row_ = -1;
  }
  return ++row_ < PQntuples(rows_.get());
}

void PgStatement::run() {
  if (session_.in_turn) {
    send_it();
  } else {
    (void)step();
  }
  reset();
}

std::int64_t PgStatement::integer(int column) const {
  if (is_null(column)) return 0;
  const char* bytes = PQgetvalue(rows_.get(), row_, column);
  switch (PQftype(rows_.get(), column)) {
    case oid_int8: {
      std::uint64_t big = 0;
      std::memcpy(&big, bytes, sizeof big);
      return static_cast<std::int64_t>(be64toh(big));
    }
    case oid_int4: {
      std::uint32_t big = 0;
      std::memcpy(&big, bytes, sizeof big);
      return static_cast<std::int32_t>(be32toh(big));
    }
    case oid_int2: {
      std::uint16_t big = 0;
      std::memcpy(&big, bytes, sizeof big);
      return static_cast<std::int16_t>(be16toh(big));
    }
    case oid_bool:
      return *bytes != 0 ? 1 : 0;
    default:
      return std::strtoll(bytes, nullptr, 10);
  }
}

std::string_view PgStatement::bytes(int column) const {
  if (is_null(column)) return {};
  return {PQgetvalue(rows_.get(), row_, column),
          static_cast<std::size_t>(PQgetlength(rows_.get(), row_, column))};
}

bool PgStatement::is_null(int column) const {
  return !rows_ || row_ < 0 || row_ >= PQntuples(rows_.get()) ||
         PQgetisnull(rows_.get(), row_, column) == 1;
}

std::unique_ptr<PgBulk> PgBulk::of(PgSession& session, std::string_view sql) {
  std::string_view types;
  bool is_once = false;
  if (sql == insert_event_sql) {
    types = "bbbbbbbttbbttyb";
  } else if (sql.starts_with("INSERT INTO heads (session, seq, events) VALUES (?, ?, ?)")) {
    types = "bbb";
    is_once = true;
  } else {
    return nullptr;
  }
  const std::string_view before = "VALUES (";
  const auto values = sql.find(before);
  const auto end = sql.find(')', values);
  std::string text(sql.substr(0, values));
  text += "SELECT * FROM unnest(";
  std::vector<Type> columns;
  for (std::size_t at = 0; at < types.size(); ++at) {
    const auto type = static_cast<Type>(types[at]);
    columns.push_back(type);
    text += (at == 0 ? "$" : ", $") + std::to_string(at + 1);
    text += type == Type::number ? "::bigint[]" : type == Type::text ? "::text[]" : "::bytea[]";
  }
  text += ")";
  text += sql.substr(end + 1);
  return std::make_unique<PgBulk>(session, std::move(text), std::move(columns), is_once);
}

PgBulk::PgBulk(PgSession& session, std::string sql, std::vector<Type> types, bool is_once)
    : session_(session),
      sql_(std::move(sql)),
      id_("b" + std::to_string(++session.statements) + "_"),
      types_(std::move(types)),
      columns_(types_.size()),
      is_once_(is_once) {
  session_.bulks.push_back(this);
}

PgBulk::~PgBulk() {
  session_.leave(std::move(name_), prepared_in_);
  std::erase(session_.bulks, this);
}

void PgBulk::bind(int at, std::int64_t number) {
  auto& column = columns_[static_cast<std::size_t>(at) - 1];
  column.next.clear();
  append_number(column.next, std::int32_t{8});
  append_number(column.next, number);
  column.next_null = false;
  if (at == 1) key_ = number;
}
void PgBulk::bind(int at, std::string_view text) {
  auto& column = columns_[static_cast<std::size_t>(at) - 1];
  std::string own;
  column.next.clear();
  append_cell(column.next, storable(text, own));
  column.next_null = false;
}
void PgBulk::bind_bytes(int at, std::string_view bytes) {
  auto& column = columns_[static_cast<std::size_t>(at) - 1];
  column.next.clear();
  append_cell(column.next, bytes);
  column.next_null = false;
}
void PgBulk::bind_null(int at) {
  auto& column = columns_[static_cast<std::size_t>(at) - 1];
  column.next.clear();
  append_number(column.next, std::int32_t{-1});
  column.next_null = true;
}
void PgBulk::bind_texts(int, std::span<const std::string_view>) {}
void PgBulk::bind_numbers(int, std::span<const std::int64_t>) {}

bool PgBulk::step() {
  run();
  return false;
}

void PgBulk::run() {
  if (is_once_ && !keys_.insert(key_).second) {
    send_rows();
    keys_.insert(key_);
  }
  for (auto& column : columns_) {
    column.cells += column.next;
    column.has_null = column.has_null || column.next_null;
    bytes_ += column.next.size();
  }
  ++rows_;
  session_.wrote = true;
  if (rows_ >= rows_max || bytes_ >= row_bytes_max) send_rows();
}

std::string PgBulk::array_of(const Column& column, Type type) const {
  const auto oid = type == Type::number ? oid_int8 : type == Type::text ? oid_text : oid_bytes;
  return array_head(oid, static_cast<std::size_t>(rows_), column.has_null) + column.cells;
}

void PgBulk::send_rows() {
  if (rows_ == 0) return;
  auto& connection = session_.connection;
  if (prepared_in_ != connection.generation()) {
    name_ = id_ + std::to_string(connection.generation());
    connection.send_prepare(name_, sql_);
    prepared_in_ = connection.generation();
  }
  std::vector<std::string> arrays;
  for (std::size_t at = 0; at < columns_.size(); ++at)
    arrays.push_back(array_of(columns_[at], types_[at]));
  PgParameters parameters;
  for (const auto& array : arrays) parameters.add(array, true);
  drop_rows();
  connection.send_prepared(name_, parameters);
}

void PgBulk::drop_rows() noexcept {
  for (auto& column : columns_) {
    column.cells.clear();
    column.has_null = false;
  }
  keys_.clear();
  rows_ = 0;
  bytes_ = 0;
}

}  // namespace watchdog::monitor
