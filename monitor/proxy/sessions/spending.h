/// \file
/// The owner's budgets of agents that use the proxy: what was spent, and whether more may be.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/sessions/attribution.h"
#include "proxy/sessions/observation.h"
#include "watchdog/budget.h"
#include "watchdog/result.h"
#include "watchdog/settings.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// A day by the calendar. A plain value.
struct CalendarDay {
  std::string name{};  ///< `2026-11-30`
  WallTime end{};      ///< The next midnight.
};
/// Returns the day in the time zone of this process. Thread-safe.
[[nodiscard]] CalendarDay local_day(WallTime at);

/// The sender of a request. A plain value.
struct Spender {
  std::string session{};
  std::string agent{};   ///< Its name; empty: unknown, as the next three.
  std::string client{};  ///< The program that asks.
  std::string model{};
  std::string server{};  ///< The model server's URL.
};

/// Returns the sender of a request. `model`: the name in the request.
[[nodiscard]] Spender spender_of(const ExchangeBegan& began, const Attribution& from,
                                 std::string model);

/// The tokens of one request and its answer. A plain value.
struct SpentTokens {
  std::int64_t prompt = 0;  ///< All of the prompt, and
  std::int64_t cached = 0;  ///< those of it that the server had already.
  std::int64_t output = 0;
};

/// A change of a budget that somebody should know of. A plain value.
struct SpendingNotice {
  std::string budget{};                    ///< Its name in the settings.
  BudgetScope per = BudgetScope::session;  ///< Whose it is.
  std::optional<int> percent{};            ///< 70, 90 or 100: it is used to that part now.
  BudgetFigures figures{};                 ///< Of the spender that was charged.
  std::string text{};                      ///< A sentence.
};

/// Why a request is refused. A plain value.
struct SpendingRefusal {
  std::string text{};               ///< For the client, and for people.
  std::optional<WallTime> until{};  ///< When requests are taken again; empty: never by itself.
};

/// Counts what is spent, for each budget and spender; beyond `spenders_max` of a budget the one is
/// forgotten that was quiet longest. Thread-safe.
class Spending {
 public:
  static constexpr std::size_t spenders_max = 10'000;

  struct Options {
    std::map<std::string, ProxyBudget> budgets{};
    std::map<std::string, ModelPrice> prices{};
    std::filesystem::path file{};  ///< Where the counts outlive the process; empty: nowhere.
    std::function<CalendarDay(WallTime)> day_of = local_day;
  };
  explicit Spending(Options options) : options_(std::move(options)) {}
  /// Returns the file of the counts of a monitor with that database.
  [[nodiscard]] static std::filesystem::path file_of(const std::filesystem::path& database);

  [[nodiscard]] bool counts() const noexcept { return !options_.budgets.empty(); }

  /// Reads the counts of earlier processes. Counts of a budget whose scope was changed begin again.
  /// Errors: those of the file; `corrupt`: it is none of ours, and the counts begin again.
  [[nodiscard]] Result<void> load();
  /// Writes the counts if they changed since. Errors: those of the file.
  [[nodiscard]] Result<void> save();

  /// Charges an answer to all budgets of its spender. Returns the notices that follow, also for
  /// each further 5 % of a session's budget.
  [[nodiscard]] std::vector<SpendingNotice> charge(const Spender& spender,
                                                   const SpentTokens& tokens, WallTime at);
  /// Returns true if a request might be refused. Costs next to nothing.
  [[nodiscard]] bool may_refuse() const noexcept { return may_refuse_; }
  /// Returns why the spender gets no further answer; empty: it gets one.
  [[nodiscard]] std::optional<SpendingRefusal> refusal(const Spender& spender, WallTime at) const;

 private:
  struct Entry {
    std::int64_t tokens = 0;
    double cost = 0;
    int noticed = 0;  ///< The highest of the notices' percents so far.
    int shown = 0;    ///< The highest twentieth that was passed on.
    WallTime at{};    ///< Of the newest charge.
  };
  using Entries = std::map<std::string, Entry>;  ///< By `key_of`.

  [[nodiscard]] std::string key_of(BudgetScope scope, const Spender& spender, WallTime at) const;
  [[nodiscard]] double cost_of(const std::string& model, const SpentTokens& tokens) const;
  [[nodiscard]] std::optional<SpendingNotice> charge(const std::string& name,
                                                     const ProxyBudget& budget, Entry& entry) const;
  [[nodiscard]] std::string counts_as_json() const;

  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Entries> spent_;  ///< By budget.
  bool is_changed_ = false;
  std::atomic<bool> may_refuse_{false};
};

}  // namespace watchdog::monitor
