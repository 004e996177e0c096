// One system call fails, at every place that makes it: the store goes on, and loses nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "support/faulty_files.h"
#include "support/process.h"
#include "support/scenario.h"
#include "support/store_work.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::FaultyFiles;
using test::FileCall;

/// How many of the calls of one kind fail in a test, each in a run of its own; all with the whole
/// suite. The first is drawn, so that each is tried some day.
struct Sample {
  int first = 1;
  int step = 1;
};
Sample sample(int calls, std::mt19937& random) {
  const bool all = test::repetitions(10) == 10;
  const int step = all ? 1 : std::max(1, calls / 6);
  return {.first = 1 + static_cast<int>(random() % static_cast<unsigned>(step)), .step = step};
}

struct FaultOf {
  FileCall call;
  FaultyFiles::Failure how = FaultyFiles::Failure::error;
  const char* name;
};

class StoreFaults : public testing::TestWithParam<FaultOf> {
 protected:
  std::mt19937 random{test::random_seed()};
  FaultyFiles files;

  /// Works in a directory of its own while what `arm` asks for fails; looks at what is left.
  void work(const std::function<void()>& arm) {
    test::TempDir dir;
    std::set<std::string> acknowledged;
    const test::StoreWork work{
        .directory = dir.path(),
        .acknowledged = [&](const std::string& event) { acknowledged.insert(event); }};
    arm();
    EXPECT_EQ(work.run(), "") << "a second try must do";
    failed_ = files.failed();
    calls_ = files.calls(GetParam().call);
    files.count();
    EXPECT_EQ(test::fault_in(work.database(), acknowledged), "");
    EXPECT_FALSE(acknowledged.empty());
  }
  bool failed_ = false;
  int calls_ = 0;
};

TEST_P(StoreFaults, each_failing_call_of_sqlite_is_survived) {
  work([&] { files.count(); });
  const int calls = calls_;
  ASSERT_GT(calls, 0) << "it is never called";
  const auto [first, step] = sample(calls, random);
  int failed = 0;
  for (int number = first; number <= calls; number += step) {
    SCOPED_TRACE(number);
    work([&] { files.fail(GetParam().call, number, GetParam().how); });
    if (failed_) ++failed;
  }
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(, StoreFaults,
                         testing::Values(FaultOf{.call = FileCall::open, .name = "open"},
                                         FaultOf{.call = FileCall::read, .name = "read"},
                                         FaultOf{.call = FileCall::write, .name = "write"},
                                         FaultOf{.call = FileCall::write,
                                                 .how = FaultyFiles::Failure::full,
                                                 .name = "write_to_a_full_disk"},
                                         FaultOf{.call = FileCall::write,
                                                 .how = FaultyFiles::Failure::half,
                                                 .name = "write_of_a_half"},
                                         FaultOf{.call = FileCall::truncate, .name = "truncate"},
                                         FaultOf{.call = FileCall::sync, .name = "sync"},
                                         FaultOf{.call = FileCall::size, .name = "size"},
                                         FaultOf{.call = FileCall::remove, .name = "remove"},
                                         FaultOf{.call = FileCall::lock, .name = "lock"},
                                         FaultOf{.call = FileCall::map_index, .name = "map_index"},
                                         FaultOf{.call = FileCall::lock_index,
                                                 .name = "lock_index"}),
                         [](const auto& info) { return std::string(info.param.name); });

#ifdef WATCHDOG_STORE_WORKER

struct FailingCall {
  const char* name;
  int error = EIO;
  const char* error_name = "EIO";
};

/// Runs the worker with a library before libc in which one call fails.
class FailingCalls : public testing::TestWithParam<FailingCall> {
 protected:
  std::mt19937 random{test::random_seed()};

  /// Returns the numbers of the calls by their names, and of those that failed.
  static std::map<std::string, int> work(const std::string& fail) {
    test::TempDir dir;
    const auto counts = dir / "counts";
    const auto place = dir / "files";
    std::filesystem::create_directory(place);
    const auto ran =
        test::run({WATCHDOG_STORE_WORKER, place.string()},
                  {.environment = {"LD_PRELOAD=" WATCHDOG_FAILING_CALLS, "FAILING_CALL=" + fail,
                                   "FAILING_CALL_IN=" + place.string(),
                                   "FAILING_CALL_COUNTS=" + counts.string()}});
    EXPECT_EQ(ran.code, 0) << ran.output;
    std::set<std::string> acknowledged;
    std::istringstream lines(ran.output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("ok ")) acknowledged.insert(line.substr(3));
    }
    EXPECT_FALSE(acknowledged.empty());
    EXPECT_EQ(test::fault_in(place / "w.db", acknowledged), "");
    std::map<std::string, int> calls;
    std::ifstream numbers(counts);
    for (std::string name; numbers >> name;) numbers >> calls[name];
    return calls;
  }
};

TEST_P(FailingCalls, each_one_is_survived) {
  const std::string name = GetParam().name;
  const int calls = work("none")[name];
  ASSERT_GT(calls, 0) << "it is never called";
  const auto [first, step] = sample(calls, random);
  int failed = 0;
  for (int number = first; number <= calls; number += step) {
    SCOPED_TRACE(number);
    failed += work(name + ":" + std::to_string(number) + ":" +
                   std::to_string(GetParam().error))["failed"];
  }
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(
    , FailingCalls,
    testing::Values(FailingCall{"open"}, FailingCall{"open", EMFILE, "EMFILE"},
                    FailingCall{"write"}, FailingCall{"write", ENOSPC, "ENOSPC"},
                    FailingCall{"fsync"}, FailingCall{"ftruncate"}, FailingCall{"rename"},
                    FailingCall{"mmap", ENOMEM, "ENOMEM"}, FailingCall{"flock", ENOLCK, "ENOLCK"},
                    FailingCall{"mkdir", ENOSPC, "ENOSPC"}, FailingCall{"read"},
                    FailingCall{"unlink"}, FailingCall{"chmod", EPERM, "EPERM"},
                    FailingCall{"stat"}, FailingCall{"stat", EACCES, "EACCES"},
                    FailingCall{"fstat"}, FailingCall{"access"}),
    [](const auto& info) { return std::string(info.param.name) + "_" + info.param.error_name; });

#endif

}  // namespace
}  // namespace watchdog
