// The answers of a running monitor about sessions. Those that it judges are in memory. Where other
// monitors judge some, their number is in what these show, and the rest is in the database.
#include "core/query_thread.h"
#include "core/store_thread.h"

namespace watchdog::monitor {

std::optional<Watched> StoreThread::watched(std::string_view session) const {
  const auto judge = observer();
  return judge ? judge->find(session) : std::nullopt;
}

Result<Tally> StoreThread::tally() {
  const auto judge = observer();
  if (!judge) return Tally{};
  auto sum = judge->tally();
  sum.add(judge->tally_of_others());
  return sum;
}

Result<std::vector<Child>> StoreThread::children(std::string_view session, std::size_t count_max) {
  auto* reader = is_shared() ? QueryThread::present_reader() : nullptr;
  if (reader != nullptr) return children_in(*this, *reader, session, count_max);
  const auto judge = observer();
  return judge ? judge->children(session, count_max) : std::vector<Child>{};
}

Result<std::vector<ActiveTurn>> StoreThread::turns(std::size_t count_max, std::string_view id) {
  const auto judge = observer();
  auto here = judge ? judge->turns(count_max, id) : std::vector<ActiveTurn>{};
  auto* reader = is_shared() ? QueryThread::present_reader() : nullptr;
  // An id is one of a turn; looking for it in all sessions of others takes long.
  if (reader == nullptr || (!id.empty() && !here.empty())) return here;
  return turns_in(*this, *reader, count_max, id);
}

}  // namespace watchdog::monitor
