// Both ways do the same: look a session up, and keep a batch until it is durable. Within `serve`
// the store thread answers both. Over HTTP a session is made once, and its events are posted as
// those of a transcript, with their own times.
#include "cli/following.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "codec/json.h"
#include "follow/positions.h"
#include "follow/transcript_root.h"
#include "judge/source_note.h"
#include "privacy/redaction.h"
#include "store/server.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

/// Returns the knowledge of this process's monitor about a session. Waits for the thread that
/// reads.
Result<FollowedSession> known_session(StoreThread& store_thread, const std::string& session) {
  std::promise<Result<FollowedSession>> promise;
  auto answer = promise.get_future();
  store_thread.read(
      [&](StoreReader& reader) {
        const auto row = reader.session(session);
        if (!row && row.error().code == ErrorCode::not_found)
          return promise.set_value(FollowedSession{});
        if (!row) return promise.set_value(row.error());
        const bool ended = is_end(row->lifecycle);
        const auto watched = store_thread.watched(session);
        const auto newest =
            ended || !watched ? row->updated : newest_report(watched->judged.history);
        promise.set_value(FollowedSession{.exists = true, .has_ended = ended, .newest = newest});
      },
      [&](const Error& error) { promise.set_value(error); });
  return answer.get();
}

Result<Receipt> keep_here(StoreThread& store_thread, Batch batch) {
  if (const auto watched = store_thread.watched(batch.session))
    drop_old_states(batch, newest_report(watched->judged.history));
  auto promise = std::make_shared<std::promise<Result<Receipt>>>();
  auto answer = promise->get_future();
  store_thread.append(std::move(batch), [promise](Result<Receipt> receipt) {
    promise->set_value(std::move(receipt));
  });
  return answer.get();
}

/// Speaks to a monitor over its API.
class TranscriptPost {
 public:
  explicit TranscriptPost(Endpoint& endpoint) : endpoint_(endpoint) {}

  Result<FollowedSession> look_up(const std::string& session) {
    const auto path = "/api/autonomous/progress/" + url_encoded(session);
    const auto body = endpoint_.ask(Method::get, path);
    if (!body && body.error().code == ErrorCode::not_found) return FollowedSession{};
    if (!body) return body.error();
    FollowedSession known{.exists = true};
    const auto document = nlohmann::json::parse(*body, nullptr, false);
    const auto outcome =
        document.is_object() ? document.value("outcome", nlohmann::json()) : nlohmann::json();
    if (outcome.is_object()) {
      known.has_ended = true;
      known.newest = WallTime{Millis{outcome.value("at", std::int64_t{0})}};
      return known;
    }
    const auto page =
        endpoint_.ask(Method::get, "/api/autonomous/sessions/" + url_encoded(session) +
                                       "/events?limit=1&before=" + std::to_string(INT64_MAX));
    if (!page) return page.error();
    const auto events = nlohmann::json::parse(*page, nullptr, false);
    if (events.is_object() && !events.value("events", nlohmann::json::array()).empty())
      known.newest = WallTime{Millis{events["events"][0].value("at_ms", std::int64_t{0})}};
    return known;
  }

  Result<Receipt> keep(const Batch& batch) {
    Receipt receipt;
    if (batch.creation != Creation::refuse && !made_.contains(batch.session)) {
      auto made = make(batch);
      if (!made) return made.error();
      receipt.created = *made;
    }
    std::string lines;
    for (const auto& report : batch.reports) lines += line_of(report) + "\n";
    const auto answer = endpoint_.ask(Method::post,
                                      "/api/autonomous/sessions/" + url_encoded(batch.session) +
                                          "/events?create=0&source=transcript",
                                      lines);
    if (!answer) return answer.error();
    const auto said = nlohmann::json::parse(*answer, nullptr, false);
    if (!said.is_object()) return receipt;
    receipt.accepted = said.value("accepted", std::size_t{0});
    receipt.duplicates = said.value("duplicates", std::size_t{0});
    receipt.late = said.value("late", std::size_t{0});
    return receipt;
  }

 private:
  static std::string line_of(Report report) {
    redact(report);  // the monitor may have other patterns
    Event event;
    event.report = std::move(report);
    return to_json(event);
  }

  Result<bool> make(const Batch& batch) {
    auto spec = batch.spec;
    redact(spec);
    auto creation = to_json(spec);
    creation.insert(1, "\"sessionId\":\"" + batch.session + "\"" + (creation == "{}" ? "" : ","));
    const auto made = endpoint_.ask(Method::post, "/api/autonomous/sessions", creation);
    // Conflict: another source made it, with other properties.
    if (!made && made.error().code != ErrorCode::conflict) return made.error();
    constexpr std::size_t made_max = 16'384;
    if (made_.size() >= made_max) made_.clear();
    made_.insert(batch.session);
    return made.ok() && made->find("\"created\":true") != std::string::npos;
  }

  Endpoint& endpoint_;
  std::unordered_set<std::string> made_;
};

/// The file of positions of the monitor itself.
std::filesystem::path positions_beside(const std::filesystem::path& database) {
  return is_server_url(database) ? folder_beside(database) / "server-transcripts"
                                 : std::filesystem::path(database.string() + "-transcripts");
}

}  // namespace

Result<std::vector<TranscriptAgent>> transcript_agents(std::span<const std::string> names) {
  std::vector<TranscriptAgent> agents;
  for (const auto& name : names) {
    const auto agent = named<TranscriptAgent>(name);
    if (!agent)
      return Error{ErrorCode::invalid, unknown_word("agent", name, all_names<TranscriptAgent>()),
                   "monitor.follow"};
    agents.push_back(*agent);
  }
  if (agents.empty())
    for (const auto& place : transcript_places()) agents.push_back(place.agent);
  return agents;
}

Following::Following(std::unique_ptr<TranscriptFollower> follower)
    : follower_(std::move(follower)), thread_([this] {
        pthread_setname_np(pthread_self(), "transcripts");
        follower_->run();
      }) {}

Following::~Following() {
  follower_->stop();
  thread_.join();
}

Result<std::unique_ptr<Following>> Following::start(StoreThread& store_thread,
                                                    const std::vector<TranscriptAgent>& agents,
                                                    const std::filesystem::path& database,
                                                    std::function<void()> caught_up) {
  TranscriptFollower::Options options;
  options.caught_up = std::move(caught_up);
  for (const auto& place : transcript_places())
    options.sources.push_back(
        {.agent = place.agent,
         .root = transcript_root(place.agent),
         .only_named = std::ranges::find(agents, place.agent) == agents.end()});
  options.positions = positions_beside(database);
  options.look_up = [&store_thread](const std::string& session) {
    return known_session(store_thread, session);
  };
  options.keep = [&store_thread](const Batch& batch) { return keep_here(store_thread, batch); };
  options.log = [](const std::string& sentence) { spdlog::warn("transcripts: {}", sentence); };
  auto follower = TranscriptFollower::start(std::move(options));
  if (!follower) return follower.error();
  return std::unique_ptr<Following>(new Following(std::move(*follower)));
}

Result<void> forget_positions(const std::filesystem::path& database,
                              const std::vector<std::string>& sessions) {
  Result<void> result;
  std::error_code trouble;
  const auto own = positions_beside(database).filename();
  for (std::filesystem::directory_iterator at(folder_beside(database), trouble), end;
       !trouble && at != end; at.increment(trouble)) {
    const auto name = at->path().filename().string();
    const bool is_of_follow = name.starts_with("follow-") && name.ends_with(".jsonl");
    if (name != own && !is_of_follow) continue;
    auto positions = Positions::open(at->path());
    const bool is_busy = !positions && positions.error().code == ErrorCode::conflict;
    if (is_busy && name == own) continue;  // this process follows, and has done it
    auto erased = positions ? positions->erase(sessions) : Result<void>(positions.error());
    if (is_busy)
      erased = Error{ErrorCode::conflict,
                     at->path().string() +
                         " may still name the forgotten sessions, because a process follows "
                         "transcripts with it. Stop that process and forget them again"};
    if (!erased) result = erased;
  }
  return result;
}

void report_to(Endpoint& endpoint, TranscriptFollower::Options& options) {
  const auto post = std::make_shared<TranscriptPost>(endpoint);
  options.look_up = [post](const std::string& session) { return post->look_up(session); };
  options.keep = [post](const Batch& batch) { return post->keep(batch); };
}

}  // namespace watchdog::monitor
