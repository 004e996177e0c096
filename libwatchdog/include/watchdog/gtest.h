/// \file
/// GoogleTest's side of `wait`: one line instead of a sleep. Needs GoogleTest, which the library
/// does not; with GoogleMock the matchers work in EXPECT_THAT as well.
///
///   EXPECT_COMPLETES("build-42");                             // in default_database()
///   EXPECT_COMPLETES("build-42", database);
///   ASSERT_COMPLETES({.session = "build-42", .database = database, .pid = agent});
///   EXPECT_COMES({.session = "build-42", .until = *awaited_from("state-change=compiled")});
///   EXPECT_THAT(wait({.session = "build-42"}), WaitsInVain(WaitEnd::stuck));
///
/// A failure shows what was expected, the session's last state and its cause, and its timeline. The
/// same is printed when a test runner's limit ends the process.
#pragma once

#include <gtest/gtest-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "watchdog/tracker.h"
#include "watchdog/wait.h"

namespace watchdog {

/// Prints a wait's result for GoogleTest.
inline void PrintTo(const Result<Waited, WaitFailure>& result, std::ostream* out) {
  *out << (result ? "it came, at event " + std::to_string(result->seq) : result.error().text());
}

namespace testing {

/// Waits, and describes a failure. Thread-safe.
inline ::testing::AssertionResult comes(const Wait& asked) {
  const Termination on_termination;
  const auto result = wait(asked);
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().text();
}

/// Waits for the session to complete. Thread-safe, as are the next two.
inline ::testing::AssertionResult completes(Wait asked) {
  asked.until.goal = Goal::outcome;
  asked.until.outcome = OutcomeKind::completed;
  return comes(asked);
}
/// Waits for a session in a file; empty: default_database().
inline ::testing::AssertionResult completes(std::string session,
                                            std::filesystem::path database = {}) {
  return completes(Wait{.session = std::move(session), .database = std::move(database)});
}
/// Waits for a tracker's session, in the tracker's file.
inline ::testing::AssertionResult completes(const ProgressTracker& tracker) {
  return completes(tracker.session(), tracker.database());
}

/// Matches the result of `wait`: the goal was met, or the wait failed with this end.
class WaitMatcher {
 public:
  /// Required by GoogleTest, as are the next ones.
  using is_gtest_matcher = void;
  /// Matches one result of a wait.
  WaitMatcher(bool came, std::optional<WaitEnd> end) : came_(came), end_(end) {}

  /// Required by GoogleTest.
  bool MatchAndExplain(const Result<Waited, WaitFailure>& result,
                       ::testing::MatchResultListener* listener) const {
    if (!result) *listener << "which failed as " << std::string(name_of(result.error().end));
    return result.ok() == came_ && (!end_ || result.error().end == *end_);
  }
  /// Required by GoogleTest.
  void DescribeTo(std::ostream* out) const {
    *out << (came_ ? "comes" : "fails");
    if (end_) *out << " as " << name_of(*end_);
  }
  /// Required by GoogleTest.
  void DescribeNegationTo(std::ostream* out) const {
    *out << "not: ";
    DescribeTo(out);
  }

 private:
  bool came_;
  std::optional<WaitEnd> end_;
};

/// Matches a wait that met its goal.
inline WaitMatcher Comes() {
  return {true, std::nullopt};
}
/// Matches a wait that failed; with `as`, only one that failed so.
inline WaitMatcher WaitsInVain(std::optional<WaitEnd> as = std::nullopt) {
  return {false, as};
}

}  // namespace testing
}  // namespace watchdog

/// A session's id and perhaps a database; a tracker; or a `Wait` in braces.
#define EXPECT_COMPLETES(...) EXPECT_TRUE(::watchdog::testing::completes(__VA_ARGS__))
/// Likewise; a failure ends the test.
#define ASSERT_COMPLETES(...) ASSERT_TRUE(::watchdog::testing::completes(__VA_ARGS__))
/// A `Wait`, also in braces.
#define EXPECT_COMES(...) EXPECT_TRUE(::watchdog::testing::comes(__VA_ARGS__))
/// Likewise; a failure ends the test.
#define ASSERT_COMES(...) ASSERT_TRUE(::watchdog::testing::comes(__VA_ARGS__))
