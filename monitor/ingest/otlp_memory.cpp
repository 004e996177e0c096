#include "ingest/otlp_memory.h"

namespace watchdog::monitor {

bool OtlpMemory::is_new(std::uint64_t record) {
  const std::lock_guard guard(mutex_);
  if (!records_.insert(record).second) return false;
  by_age_.push_back(record);
  if (by_age_.size() > records_max) {
    records_.erase(by_age_.front());
    by_age_.pop_front();
  }
  return true;
}

void OtlpMemory::begin_answer(const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (answers_.size() >= sessions_max) answers_.clear();
  answers_[session] = {};
}

void OtlpMemory::note_call(const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (const auto found = answers_.find(session); found != answers_.end())
    found->second.called = true;
}

void OtlpMemory::note_text(const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (const auto found = answers_.find(session); found != answers_.end())
    found->second.has_text = true;
}

std::optional<bool> OtlpMemory::end_answer(const std::string& session) {
  const std::lock_guard guard(mutex_);
  const auto found = answers_.find(session);
  if (found == answers_.end()) return std::nullopt;
  const auto answer = found->second;
  answers_.erase(found);
  if (!answer.called && !answer.has_text) return std::nullopt;
  return answer.called;
}

std::string OtlpMemory::session_of_trace(const std::string& trace) {
  const std::lock_guard guard(mutex_);
  const auto found = traces_.find(trace);
  return found == traces_.end() ? std::string() : found->second;
}

void OtlpMemory::note_trace(const std::string& trace, const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (traces_.size() >= sessions_max) traces_.clear();
  traces_.emplace(trace, session);
}

double OtlpMemory::rise(const std::string& session, std::uint64_t series, double total,
                        bool counted_before) {
  const std::lock_guard guard(mutex_);
  if (series_.size() >= records_max) series_.clear();
  if (measured_.size() >= sessions_max) measured_.clear();
  const bool known_before = measured_.emplace(session, counted_before).first->second;
  const auto [place, is_first] = series_.emplace(series, total);
  if (is_first) return known_before ? 0 : total;
  const auto before = std::exchange(place->second, total);
  return total < before ? total : total - before;  // below: the counter began again
}

}  // namespace watchdog::monitor
