// Each budget counts by spender: a session, a name, or a day. Names are kept as digests, so the
// file tells nobody which sessions and servers there were, and no session has to be forgotten in
// it. The threads that pass requests on ask `refusal`; the one that makes reports charges and
// saves. A request that crosses a limit is answered whole: only the next one is refused.
#include "proxy/sessions/spending.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "codec/fields.h"
#include "facts/digest.h"
#include "files/durable_file.h"
#include "files/regular_file.h"
#include "store/server.h"
#include "text/figures.h"
#include "text/json_writer.h"
#include "text/wildcard.h"

namespace watchdog::monitor {
namespace {

/// Notices come at these parts of a budget, in percent.
constexpr std::array notice_percents{70, 90, 100};
/// A session's own figures are passed on at each of these steps.
constexpr int figure_steps = 20;
constexpr std::size_t file_bytes_max = 32UL * 1024 * 1024;
constexpr std::size_t file_values_max = 1'000'000;
constexpr std::size_t name_bytes_max = 256;

std::string amount(double cost) {
  std::array<char, 64> text{};
  const char* form = cost != 0 && std::abs(cost) < 0.1 ? "%.4f" : "%.2f";
  (void)std::snprintf(text.data(), text.size(), form, cost);  // NOLINT(*-vararg)
  return text.data();
}

BudgetFigures figures_of(const ProxyBudget& budget, std::int64_t tokens, double cost) {
  BudgetFigures figures{
      .limits = {.tokens = budget.tokens, .cost = budget.cost}, .tokens = tokens, .cost = cost};
  weigh(figures);
  figures.stage = stage_of(figures);
  return figures;
}

/// `1,412,000 of 2,000,000 tokens`, `14.10 of 20.00 in cost`: of the axis that is used most.
std::string used_in(const BudgetFigures& figures) {
  return figures.axis == BudgetAxis::cost
             ? amount(figures.cost) + " of " + amount(*figures.limits.cost) + " in cost"
             : grouped(figures.tokens) + " of " + grouped(*figures.limits.tokens) + " tokens";
}

std::string_view property_of(BudgetScope scope, const Spender& spender) {
  switch (scope) {
    case BudgetScope::session:
      return spender.session;
    case BudgetScope::agent:
      return spender.agent;
    case BudgetScope::client:
      return spender.client;
    case BudgetScope::model:
      return spender.model;
    case BudgetScope::server:
      return spender.server;
    case BudgetScope::day:
      break;
  }
  return {};
}

/// ` of this session`, ` today`
std::string whose(BudgetScope scope) {
  return scope == BudgetScope::day ? " today" : " of this " + std::string(name_of(scope));
}

std::string clock_time(WallTime at) {
  const auto seconds = static_cast<std::time_t>(at.time_since_epoch().count() / 1'000);
  std::tm parts{};
  std::array<char, 32> text{};
  if (localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), "%H:%M", &parts) == 0)
    return {};
  return text.data();
}

}  // namespace

CalendarDay local_day(WallTime at) {
  const auto seconds = static_cast<std::time_t>(at.time_since_epoch().count() / 1'000);
  std::tm parts{};
  std::array<char, 32> text{};
  if (localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts) == 0)
    return {.name = "unknown", .end = at};
  parts.tm_mday += 1;
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_isdst = -1;
  return {.name = text.data(), .end = WallTime{Millis{std::int64_t{std::mktime(&parts)} * 1'000}}};
}

Spender spender_of(const ExchangeBegan& began, const Attribution& from, std::string model) {
  return {.session = from.session,
          .agent = from.agent,
          .client = from.client,
          .model = std::move(model),
          .server = began.server};
}

std::filesystem::path Spending::file_of(const std::filesystem::path& database) {
  if (is_server_url(database)) return folder_beside(database) / "server-spending";
  return database.string() + "-spending";
}

std::string Spending::key_of(BudgetScope scope, const Spender& spender, WallTime at) const {
  if (scope == BudgetScope::day) return options_.day_of(at).name;
  return hexadecimal(digest_of(property_of(scope, spender)));
}

double Spending::cost_of(const std::string& model, const SpentTokens& tokens) const {
  const auto found = std::ranges::find_if(options_.prices, [&](const auto& price) {
    return std::ranges::any_of(
        price.second.models, [&](const auto& pattern) { return matches_wildcard(pattern, model); });
  });
  if (found == options_.prices.end()) return 0;
  const auto& price = found->second;
  const auto cached = std::min(tokens.cached, tokens.prompt);
  constexpr double million = 1e6;
  return (static_cast<double>(tokens.prompt - cached) * price.input_per_million +
          static_cast<double>(cached) * price.cached_per_million.value_or(price.input_per_million) +
          static_cast<double>(tokens.output) * price.output_per_million) /
         million;
}

std::optional<SpendingNotice> Spending::charge(const std::string& name, const ProxyBudget& budget,
                                               Entry& entry) const {
  SpendingNotice notice{
      .budget = name, .per = budget.per, .figures = figures_of(budget, entry.tokens, entry.cost)};
  const double share = notice.figures.pressure;
  for (const int percent : notice_percents) {
    if (share * 100 < percent || percent <= entry.noticed) continue;
    entry.noticed = percent;
    notice.percent = percent;
  }
  const auto step = static_cast<int>(std::min(share, 1.0) * figure_steps);
  const bool shows = budget.per == BudgetScope::session && step > entry.shown;
  entry.shown = std::max(entry.shown, step);
  if (!notice.percent && !shows) return std::nullopt;
  notice.text = "the budget " + name + " is used to " +
                std::to_string(static_cast<std::int64_t>(share * 100)) +
                " %: " + used_in(notice.figures) + whose(budget.per);
  return notice;
}

std::vector<SpendingNotice> Spending::charge(const Spender& spender, const SpentTokens& tokens,
                                             WallTime at) {
  std::vector<SpendingNotice> notices;
  if (!counts() || (tokens.prompt <= 0 && tokens.output <= 0)) return notices;
  const double cost = cost_of(spender.model, tokens);
  const std::lock_guard guard(mutex_);
  for (const auto& [name, budget] : options_.budgets) {
    if (budget.per != BudgetScope::day && property_of(budget.per, spender).empty()) continue;
    auto& entries = spent_[name];
    const auto key = key_of(budget.per, spender, at);
    if (!entries.contains(key)) {
      if (budget.per == BudgetScope::day) entries.clear();
      if (entries.size() >= spenders_max)
        entries.erase(std::ranges::min_element(entries, {},
                                               [](const auto& entry) { return entry.second.at; }));
    }
    auto& entry = entries[key];
    entry.tokens = std::min(entry.tokens + tokens.prompt + tokens.output, budget_max);
    entry.cost = std::min(entry.cost + cost, static_cast<double>(budget_max));
    entry.at = at;
    is_changed_ = true;
    if (auto notice = charge(name, budget, entry)) {
      if (budget.refuse && notice->figures.pressure >= 1) may_refuse_ = true;
      notices.push_back(std::move(*notice));
    }
  }
  return notices;
}

std::optional<SpendingRefusal> Spending::refusal(const Spender& spender, WallTime at) const {
  if (!may_refuse()) return std::nullopt;
  const std::lock_guard guard(mutex_);
  for (const auto& [name, budget] : options_.budgets) {
    if (!budget.refuse) continue;
    const auto entries = spent_.find(name);
    if (entries == spent_.end()) continue;
    const auto entry = entries->second.find(key_of(budget.per, spender, at));
    if (entry == entries->second.end()) continue;
    const auto figures = figures_of(budget, entry->second.tokens, entry->second.cost);
    if (figures.pressure < 1) continue;
    SpendingRefusal refusal{.text = "the budget " + name + " is used up: " + used_in(figures) +
                                    whose(budget.per) + ". The monitor refuses further requests"};
    if (budget.per == BudgetScope::day) {
      refusal.until = options_.day_of(at).end;
      refusal.text += " until " + clock_time(*refusal.until);
    }
    refusal.text += ", because its owner set proxy.budgets." + name + ".refuse";
    return refusal;
  }
  return std::nullopt;
}

std::string Spending::counts_as_json() const {
  JsonWriter out;
  out.open_object().field("version", 1).key("budgets").open_array();
  for (const auto& [name, entries] : spent_) {
    out.open_object().field("name", name);
    out.field("per", name_of(options_.budgets.at(name).per)).key("spent").open_array();
    for (const auto& [key, entry] : entries) {
      out.open_object().field("of", key).field("tokens", entry.tokens).field("cost", entry.cost);
      out.field("noticed", entry.noticed).field("at", entry.at.time_since_epoch().count());
      out.close_object();
    }
    out.close_array().close_object();
  }
  out.close_array().close_object();
  return out.finish() + "\n";
}

Result<void> Spending::save() {
  if (options_.file.empty()) return {};
  std::string text;
  {
    const std::lock_guard guard(mutex_);
    if (!std::exchange(is_changed_, false)) return {};
    text = counts_as_json();
  }
  const int code = put_file(options_.file, text);
  if (code == 0) return {};
  const std::lock_guard guard(mutex_);
  is_changed_ = true;
  return Error{ErrorCode::unavailable, "cannot write " + options_.file.string() + ": " +
                                           std::strerror(code)};  // NOLINT(concurrency-mt-unsafe)
}

Result<void> Spending::load() {
  if (options_.file.empty() || !counts()) return {};
  const auto text = read_regular_file(options_.file, file_bytes_max, Readers::owner);
  if (!text && text.error().code == ErrorCode::not_found) return {};
  if (!text) return Error{text.error().code, options_.file.string() + " " + text.error().message};
  const auto corrupt = [&](const std::string& why) {
    return Error{ErrorCode::corrupt, options_.file.string() + ": " + why};
  };
  const auto parsed = parse_json(*text, file_values_max);
  if (!parsed) return corrupt(parsed.error().message);
  const auto* budgets =
      parsed->is_object() && parsed->contains("budgets") && (*parsed)["budgets"].is_array()
          ? &(*parsed)["budgets"]
          : nullptr;
  if (budgets == nullptr) return corrupt("it has no list of budgets");
  std::map<std::string, Entries> found;
  bool refuses = false;
  for (const auto& one : *budgets) {
    if (!one.is_object()) return corrupt("a budget is not an object");
    Fields fields(one);
    std::string name;
    std::optional<BudgetScope> per;
    fields.text("name", name, name_bytes_max);
    fields.choice("per", per);
    const auto* spent = fields.find("spent");
    if (fields.error() || spent == nullptr || !spent->is_array())
      return corrupt("a budget has no name, scope or list");
    const auto known = options_.budgets.find(name);
    if (known == options_.budgets.end() || known->second.per != per) continue;
    for (const auto& row : *spent) {
      if (!row.is_object()) return corrupt("a count is not an object");
      Fields of(row);
      std::string key;
      std::optional<std::int64_t> tokens, noticed, at;
      std::optional<double> cost;
      of.text("of", key, name_bytes_max);
      of.integer("tokens", tokens);
      of.integer("noticed", noticed);
      of.integer("at", at);
      of.number("cost", cost);
      if (of.error() || key.empty()) return corrupt("a count has no spender, or no numbers");
      auto& entry = found[name][key];
      entry = {.tokens = std::clamp(tokens.value_or(0), std::int64_t{0}, budget_max),
               .cost = std::clamp(cost.value_or(0), 0.0, static_cast<double>(budget_max)),
               .noticed = static_cast<int>(std::clamp(noticed.value_or(0), std::int64_t{0},
                                                      std::int64_t{notice_percents.back()})),
               .at = WallTime{Millis{at.value_or(0)}}};
      const auto figures = figures_of(known->second, entry.tokens, entry.cost);
      refuses |= known->second.refuse && figures.pressure >= 1;
      // A limit that was raised has its notices before it again.
      while (entry.noticed > 0 && figures.pressure * 100 < entry.noticed) {
        const auto* lower = std::ranges::lower_bound(notice_percents, entry.noticed);
        entry.noticed = lower == notice_percents.begin() ? 0 : *(lower - 1);
      }
    }
  }
  const std::lock_guard guard(mutex_);
  spent_ = std::move(found);
  may_refuse_ = refuses;
  return {};
}

}  // namespace watchdog::monitor
