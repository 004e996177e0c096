#include "store/change_notifier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "store/store.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::change;
using test::say;
using test::TempDir;

TEST(ChangeListener, rings_other_processes_and_only_those_addressed) {
  TempDir dir;
  auto store = Store::open({.database = dir / "w.db"});
  ASSERT_TRUE(store.ok());
  const auto key = say(*store, "s", {change()})->key;
  auto all = ChangeListener::for_all(dir / "w.db");
  auto mine = ChangeListener::for_session(dir / "w.db", key);
  auto other = ChangeListener::for_session(dir / "w.db", key + 1);
  ASSERT_TRUE(all.ok() && mine.ok() && other.ok());
  const auto rang = [](ChangeListener& listener) {
    char byte = 0;
    const bool yes = read(listener.fd(), &byte, 1) == 1;
    listener.clear();
    return yes;
  };
  (void)say(*store, "s", {change()});
  EXPECT_TRUE(rang(*all));
  EXPECT_FALSE(rang(*mine));
  Report cancel{.kind = ReportKind::cancel};
  cancel.detail = CancelRequest{.by = "user"};
  (void)say(*store, "s", {cancel});
  EXPECT_TRUE(rang(*all));
  EXPECT_TRUE(rang(*mine));
  EXPECT_FALSE(rang(*other));
}

TEST(ChangeListener, passes_over_names_that_a_killed_process_of_the_same_pid_left) {
  TempDir dir;
  const auto sockets = dir / "w.db.bells";
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(sockets))
      found.insert(entry.path().filename());
    return found;
  };
  auto first = ChangeListener::for_all(dir / "w.db");
  ASSERT_TRUE(first.ok());
  const auto name = *names().begin();
  const auto stem = name.substr(0, name.rfind('-') + 1);
  const int number = std::stoi(name.substr(stem.size()));
  for (int next = 1; next <= 3; ++next)
    std::ofstream(sockets / (stem + std::to_string(number + next)));
  auto second = ChangeListener::for_all(dir / "w.db");
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(names().contains(stem + std::to_string(number + 4)));
}

}  // namespace
}  // namespace watchdog
