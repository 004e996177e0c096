// The promises of a store when a writer is killed, and when the server fails under it.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "store/engines.h"
#include "support/process.h"
#include "support/reports.h"

namespace watchdog {
namespace {

using test::all_events;
using test::change;
using test::OnEngine;
using test::Postgres;
using test::Process;
using test::say;
using test::with_id;

/// Set in the environment of a program that is to be a writer: the database.
constexpr const char* worker_database = "WATCHDOG_TEST_WRITES_TO";

/// Appends, and names each event that was acknowledged, until it is killed.
[[noreturn]] void write_until_killed(const std::string& database) {
  monitor::use_postgresql();
  auto store = Store::open({.database = database});
  if (!store) std::_Exit(1);
  for (int number = 0;; ++number) {
    const auto id = std::to_string(getpid()) + "-" + std::to_string(number);
    if (say(*store, "s", {with_id(change(), id + "a"), with_id(change(), id + "b")})) {
      std::printf("%s\n", id.c_str());
      std::fflush(stdout);
    }
  }
}

/// Before gtest takes the program over.
const bool is_worker = [] {
  if (const char* database = std::getenv(worker_database)) write_until_killed(database);
  return true;
}();

/// Each acknowledged event is there once, and no event twice.
void expect_whole(Store& store, const std::string& session,
                  const std::set<std::string>& acknowledged) {
  std::set<std::string> stored;
  Seq prev = 0;
  for (const auto& event : all_events(store.reader(), session)) {
    EXPECT_TRUE(stored.insert(event.report.event_id).second)
        << event.report.event_id << " is twice";
    EXPECT_EQ(event.prev, prev) << "the chain is whole";
    prev = event.seq;
  }
  for (const auto& id : acknowledged) EXPECT_TRUE(stored.contains(id)) << id << " is lost";
}

using EngineCrashes = OnEngine;
INSTANTIATE_TEST_SUITE_P(Store, EngineCrashes,
                         testing::Values("file", "postgresql", "serializable"), test::engine_name);

TEST_P(EngineCrashes, keep_all_that_was_acknowledged_to_a_killed_writer) {
  ASSERT_TRUE(is_worker);
  auto store = open();
  std::set<std::string> acknowledged;
  for (int round = 0; round < 5; ++round) {
    Process first({"/proc/self/exe"},
                  {.environment = {std::string(worker_database) + "=" + place().string()}});
    Process second({"/proc/self/exe"},
                   {.environment = {std::string(worker_database) + "=" + place().string()}});
    for (int line = 0; line < 8; ++line) {
      for (auto* writer : {&first, &second}) {
        const auto id = writer->line();
        ASSERT_FALSE(id.empty());
        acknowledged.insert(id + "a");
        acknowledged.insert(id + "b");
      }
    }
    first.signal(SIGKILL);
    second.signal(SIGKILL);
    first.wait();
    second.wait();
    const auto receipt = say(store, "after", {change()});  // nobody holds the turn for ever
    ASSERT_TRUE(receipt.ok()) << receipt.error().message;
  }
  expect_whole(store, "s", acknowledged);
}

TEST(ServerCrash, loses_nothing_that_was_acknowledged) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  monitor::use_postgresql();
  auto& server = Postgres::shared();
  server.clear();
  { ASSERT_TRUE(Store::open({.database = server.url()}).ok()); }
  constexpr int writers = 3;
  std::set<std::string> acknowledged[writers];
  std::atomic<int> stored = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      // On a busy machine a thread may begin while the server is down.
      auto store = Store::open({.database = server.url()});
      while (!store && !stop) store = Store::open({.database = server.url()});
      for (int number = 0; !stop; ++number) {
        const auto id = std::to_string(number);
        // As an agent does: the same report again until it is acknowledged.
        while (!say(*store, "s" + std::to_string(writer), {with_id(change(), id)}) && !stop) {
        }
        if (stop) break;
        acknowledged[writer].insert(id);
        ++stored;
      }
    });
  }
  for (int crash = 0; crash < 3; ++crash) {
    for (const int before = stored; stored < before + 30;) std::this_thread::yield();
    server.crash();
  }
  for (const int before = stored; stored < before + 30;) std::this_thread::yield();
  stop = true;
  for (auto& thread : threads) thread.join();
  auto store = Store::open({.database = server.url()});
  for (int writer = 0; writer < writers; ++writer)
    expect_whole(*store, "s" + std::to_string(writer), acknowledged[writer]);
}

TEST(ServerCrash, a_writer_that_stops_within_its_turn_is_not_waited_for_for_ever) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  monitor::use_postgresql();
  auto& server = Postgres::shared();
  server.clear();
  auto stopped = Store::open({.database = server.url()});
  auto other = Store::open({.database = server.url()});
  Result<Receipt> receipt = Error{};
  const auto done = stopped->alone([&]() -> Result<void> {
    receipt = say(*other, "s", {change()});  // waits until the server ends this turn
    return {};
  });
  EXPECT_TRUE(receipt.ok()) << receipt.error().message;
  EXPECT_FALSE(done.ok()) << "its turn was over";
  EXPECT_TRUE(say(*stopped, "s", {change()}).ok());
  EXPECT_EQ(all_events(stopped->reader(), "s").size(), 2U);
}

TEST(ServerTables, are_brought_up_to_date_while_an_older_writer_goes_on) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  monitor::use_postgresql();
  auto& server = Postgres::shared();
  server.clear();
  auto older = Store::open({.database = server.url()});
  ASSERT_TRUE(say(*older, "s", {change()}).ok());
  // As it was before the newest minor version.
  (void)server.run(
      "DROP TABLE leases; DROP TABLE monitors; UPDATE meta SET value = 1000 WHERE key = 'schema'");
  const auto reader = StoreReader::open(server.url());
  EXPECT_EQ(reader.ok() ? ErrorCode{} : reader.error().code, ErrorCode::conflict);
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::thread writes([&] {
    while (!stop)
      if (!say(*older, "s", {change()})) ++failed;
  });
  std::thread other([&] {
    if (!Store::open({.database = server.url()})) ++failed;
  });
  auto newer = Store::open({.database = server.url()});
  other.join();
  EXPECT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_TRUE(say(*newer, "t", {change()}).ok());
  stop = true;
  writes.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(server.run("SELECT value FROM meta WHERE key = 'schema'"), "1003");
  (void)server.run("UPDATE meta SET value = 2000 WHERE key = 'schema'");
  EXPECT_EQ(Store::open({.database = server.url()}).error().code, ErrorCode::conflict);
}

TEST(ServerUrl, may_have_no_password_and_is_not_repeated) {
  monitor::use_postgresql();
  for (const std::string url :
       {"postgresql://me:topsecret@localhost/db", "postgres:///db?password=topsecret",
        "postgresql://me:topsecret@[/db"}) {
    const auto refused = Store::open({.database = url});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_EQ(refused.error().message.find("topsecret"), std::string::npos);
    EXPECT_FALSE(StoreReader::open(url).ok());
  }
  EXPECT_NE(Store::open({.database = "postgres:///db?password=x"}).error().message.find(".pgpass"),
            std::string::npos);
  const auto nowhere = Store::open({.database = "postgresql:///db?host=/nowhere"});
  EXPECT_EQ(nowhere.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace watchdog
