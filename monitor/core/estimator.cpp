// The features of a session are those of its first 64 calls at most, so they are folded once. Later
// events are only counted. A session's fold takes some 30 KiB until then; only the sessions that
// were asked for last are remembered.
#include "core/estimator.h"

#include <sys/stat.h>

#include <algorithm>

#include "files/regular_file.h"
#include "predict/estimate.h"
#include "store/event_reader.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t followed_max = 256;
constexpr int events_at_once = 1'000;
constexpr int reads_max = 10;
/// Looking at a file costs as much as a tenth of a request.
constexpr std::chrono::milliseconds look_every{100};

}  // namespace

std::filesystem::path model_beside(const std::filesystem::path& database) {
  return database.string() + "-prediction.json";
}

Result<PredictionModel> read_model(const std::filesystem::path& file) {
  const auto in_file = [&](Error error) {
    error.message = file.string() + ": " + error.message;
    return error;
  };
  const auto text = read_regular_file(file, model_bytes_max, Readers::anybody);
  if (!text) return in_file(text.error());
  auto model = model_from_json(*text);
  if (!model) return in_file(model.error());
  return model;
}

Estimator::Estimator(const std::filesystem::path& database) : file_(model_beside(database)) {}

std::shared_ptr<const PredictionModel> Estimator::model() {
  const std::lock_guard lock(model_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return model_;
  next_look_ = now + look_every;
  struct stat found {};
  Stamp stamp;
  if (stat(file_.c_str(), &found) == 0) {
    constexpr std::int64_t second = 1'000'000'000;
    stamp = {found.st_mtim.tv_sec * second + found.st_mtim.tv_nsec, found.st_ino, found.st_size};
  }
  if (stamp == stamp_) return model_;
  stamp_ = stamp;
  model_ = nullptr;
  if (stamp.size < 0) return model_;
  if (auto read = read_model(file_))
    model_ = std::make_shared<const PredictionModel>(std::move(*read));
  return model_;
}

bool Estimator::knows(std::string_view agent) {
  const auto known = model();
  return known != nullptr && has_estimates(*known, agent);
}

void Estimator::Followed::begin() {
  fold = std::make_unique<ExampleFold>();
  reached = {};
  calls = 0;
}

void Estimator::Followed::take(const Event& event) {
  seq = event.seq;
  if (event.late) return;
  // Another attempt may follow.
  if (event.report.kind == ReportKind::end) return begin();
  if (fold == nullptr) {
    calls += finishes_call(event.report.kind) ? 1 : 0;
    return;
  }
  fold->fold(event);
  calls = fold->run().calls();
  if (calls < stage_calls[whole_run - 1]) return;
  reached = fold->example();
  fold = nullptr;
}

Estimator::Followed& Estimator::followed(SessionKey session) {
  if (sessions_.size() >= followed_max && !sessions_.contains(session)) {
    sessions_.erase(std::ranges::min_element(sessions_, {},
                                             [](const auto& entry) { return entry.second.used; }));
  }
  auto& one = sessions_[session];
  if (one.seq == 0) one.begin();
  one.used = ++asked_;
  return one;
}

Result<std::optional<Estimate>> Estimator::of(StoreReader& reader, SessionKey session,
                                              std::string_view agent) {
  const auto known = model();
  if (known == nullptr || !has_estimates(*known, agent)) return std::optional<Estimate>{};
  const std::lock_guard lock(sessions_mutex_);
  auto& one = followed(session);
  bool is_whole = false;
  for (int reads = 0; reads < reads_max && !is_whole; ++reads) {
    const auto page = EventReader(reader).page(session, one.seq, events_at_once);
    if (!page) return page.error();
    for (const auto& event : page->events) one.take(event);
    is_whole = !page->next.has_value();
  }
  if (!is_whole) return std::optional<Estimate>{};
  return estimate_of(*known, one.fold ? one.fold->example() : one.reached, one.calls, agent);
}

}  // namespace watchdog::monitor
