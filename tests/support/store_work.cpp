#include "support/store_work.h"

#include <sqlite3.h>

#include <memory>
#include <optional>

#include "observer/observer.h"
#include "store/change_notifier.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "support/manual_clock.h"
#include "support/reports.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

/// Everything that is open, so that it can be closed and opened again.
class Worker {
 public:
  explicit Worker(const StoreWork& work) : work_(work) {}

  std::string run() {
    for (int round = 0; round < 4; ++round) {
      append("a", 4);
      append("b", 2);
      step("judge", [&] { return judge(); });
      append("gone", 3, true);
      clock_.advance(10s);
    }
    step("trim", [&] { return trim(); });
    step("copy", [&] { return copy(); });
    step("erase", [&] { return erase(); });
    append("a", 2);
    close();
    append("b", 2);
    step("read", [&] { return read(); });
    return trouble_;
  }

 private:
  /// Tries again what failed once.
  template <class Work>
  void step(const char* name, Work&& work) {
    if (!trouble_.empty()) return;
    std::string first;
    for (int tries = 0; tries < 2; ++tries) {
      const Result<void> done = open() ? work() : Result<void>(*refusal_);
      if (done) return;
      if (tries == 0)
        first = done.error().message;
      else
        trouble_ = std::string(name) + ": " + first + "; then " + done.error().message;
      judge_.reset();
    }
  }

  bool open() {
    if (store_ && store_->vanished()) close();
    if (store_) return true;
    auto opened = Store::open({.database = work_.database(), .clock = &clock_});
    if (!opened) {
      refusal_ = opened.error();
      return false;
    }
    store_.emplace(std::move(*opened));
    if (auto listener = ChangeListener::for_all(work_.database())) listener_ = std::move(*listener);
    return true;
  }
  void close() {
    judge_.reset();
    store_.reset();
  }

  void append(const std::string& session, int count, bool end = false) {
    Batch batch{.session = session};
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back("id" + std::to_string(++number_));
      batch.reports.push_back(with_id(change("step", std::string(150, 'x')), ids.back()));
    }
    if (end) {
      Report start{.kind = ReportKind::start};
      ids.push_back("id" + std::to_string(++number_));
      batch.reports.push_back(with_id(ending(), ids.back()));
      ids.push_back("id" + std::to_string(++number_));
      batch.reports.insert(batch.reports.begin(), with_id(start, ids.back()));
    }
    step("append", [&]() -> Result<void> {
      auto copy = batch;
      const auto receipts = store_->append({&copy, 1});
      if (!receipts) return receipts.error();
      if (!receipts->front()) return receipts->front().error();
      return {};
    });
    if (!trouble_.empty()) return;
    for (const auto& id : ids) work_.acknowledged(session + " " + id);
  }

  Result<void> judge() {
    if (!judge_) {
      auto started = Observer::start(*store_, {});
      if (!started) return started.error();
      judge_ = std::move(*started);
    }
    if (auto looked = judge_->look(); !looked) return looked.error();
    return judge_->checkpoint();
  }

  Result<void> trim() {
    if (auto judged = judge(); !judged) return judged;
    const Retention keep{.ended_for = 1h, .heartbeats_for = 1s, .folded_through = judge_->folded()};
    for (int pieces = 0; pieces < 50; ++pieces) {
      const auto more = RetentionActs(*store_).trim(keep);
      if (!more) return more.error();
      if (!*more) break;
    }
    return {};
  }

  Result<void> copy() {
    const auto made = store_->reader().copy_to(work_.directory / "copy.db");
    if (made) return {};
    return made.error();
  }

  /// A session that was erased already is not there any more.
  Result<void> erase() {
    auto erased = store_->erase({.sessions = {"gone"}});
    if (!erased && erased.error().code == ErrorCode::not_found) erased = store_->erase({});
    return erased ? Result<void>{} : erased.error();
  }

  Result<void> read() {
    auto reader = StoreReader::open(work_.database());
    if (!reader) return reader.error();
    for (const auto* session : {"a", "b"}) {
      const auto row = reader->session(session);
      if (!row) return row.error();
      if (const auto page = EventReader(*reader).page(row->key, 0, 1'000); !page)
        return page.error();
      if (const auto judged = reader->fold(*row); !judged) return judged.error();
    }
    return {};
  }

  const StoreWork& work_;
  ManualClock clock_;
  std::optional<Store> store_;
  std::unique_ptr<Observer> judge_;
  ChangeListener listener_;
  std::optional<Error> refusal_;
  std::string trouble_;
  int number_ = 0;
};

/// The result of a query, one line per row; or SQLite's error.
std::string answer(sqlite3* file, const char* sql) {
  std::string text;
  const int code = sqlite3_exec(
      file, sql,
      [](void* into, int count, char** values, char**) {
        auto& lines = *static_cast<std::string*>(into);
        for (int i = 0; i < count; ++i) lines += values[i] != nullptr ? values[i] : "";
        lines += "\n";
        return 0;
      },
      &text, nullptr);
  return code == SQLITE_OK ? text : std::string(sqlite3_errmsg(file)) + "\n";
}

}  // namespace

std::string StoreWork::run() const {
  return Worker(*this).run();
}

std::string fault_in(const std::filesystem::path& database,
                     const std::set<std::string>& acknowledged) {
  {
    auto store = Store::open({.database = database});
    if (!store) return "it does not open: " + store.error().message;
    if (!say(*store, "after", {change()})) return "it cannot be written";
  }
  sqlite3* file = nullptr;
  sqlite3_open_v2(database.c_str(), &file, SQLITE_OPEN_READONLY, nullptr);
  const auto intact = answer(file, "PRAGMA integrity_check");
  const auto twice = answer(file,
                            "SELECT session || ' ' || event_id FROM events WHERE event_id IS NOT "
                            "NULL GROUP BY session, event_id HAVING count(*) > 1");
  auto stored = answer(file,
                       "SELECT s.name || ' ' || e.event_id FROM events e JOIN sessions s ON s.id "
                       "= e.session WHERE e.event_id IS NOT NULL");
  sqlite3_close(file);
  if (intact != "ok\n") return "it is damaged: " + intact;
  if (!twice.empty()) return "stored twice: " + twice;
  stored = "\n" + stored;
  for (const auto& event : acknowledged) {
    if (event.starts_with("gone ")) continue;  // erased
    if (stored.find("\n" + event + "\n") == std::string::npos) return "lost: " + event;
  }
  return {};
}

}  // namespace watchdog::test
