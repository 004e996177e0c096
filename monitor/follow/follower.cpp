// One thread. Each turn looks at what changed, reads one piece of one file, and hands its reports
// on; then the file's position is saved. Files that grow come first. For the others the thread
// rests after each piece, by the processor time that the process needed for it. Reports that could
// not be kept stay with their file and are given again before anything else of it is read.
#include "follow/follower.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "follow/directory_watch.h"
#include "follow/followed.h"
#include "follow/opencode_log.h"
#include "follow/positions.h"
#include "follow/transcript_root.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t transcripts_max = 200'000;
constexpr std::chrono::seconds look_through_every{30};
constexpr std::chrono::seconds look_through_often{2};  ///< Where not all changes are seen.
constexpr std::chrono::milliseconds keep_again_first{500};
constexpr std::chrono::milliseconds keep_again_last{30'000};
/// A transcript that nobody read is left when it was quiet this long.
constexpr Millis quiet_for{600'000};
/// A file that is half written is looked at again after this time, while it is this new.
constexpr std::chrono::seconds half_again{1};
constexpr Millis half_for{10'000};
/// A database that could not be read is looked at again after this time.
constexpr std::chrono::milliseconds database_again{2'000};
/// Another source may have reported the same thing a little later than its line.
constexpr Millis reported_within{5'000};

Millis processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Millis{used.tv_sec * 1'000 + used.tv_nsec / 1'000'000};
}

}  // namespace

struct TranscriptFollower::State {
  explicit State(Options chosen)
      : options(std::move(chosen)),
        wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        asked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~State() {
    if (wake >= 0) close(wake);
    if (asked >= 0) close(asked);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Options options;
  int wake;
  int asked;  ///< Readable while sessions are to be forgotten.
  std::mutex asking;
  std::condition_variable answered;
  std::vector<std::string> to_forget;  ///< Guarded by `asking`, as is the next one.
  std::vector<std::string> to_name;
  std::set<std::string> named;  ///< Files of the sources with `only_named`, without links.
  Positions positions;
  DirectoryWatch watch;
  OpencodeLogs logs;
  std::map<std::string, Followed> files;
  std::unordered_map<std::string, WallTime> reported_from;  ///< By session.
  EarlyEnds early_ends;
  std::map<std::string, std::string> roots;  ///< Folders as they were named, and without links.
  FollowFigures figures;
  SteadyTime next_look{};
  SteadyTime next_root{};
  SteadyTime next_rest = SteadyTime::max();  ///< See Followed::rests_at.
  SteadyTime rest_until{};
  SteadyTime keep_again{};
  std::chrono::milliseconds pause = keep_again_first;
  std::optional<Error> trouble;  ///< Why the newest reports could not be kept.
  bool was_refused = false;
  bool is_once = false;  ///< Nothing is read later.

  // Finding
  void look_through();
  void look_for_roots();
  [[nodiscard]] const TranscriptSource* source_of(const std::string& path) const;
  void look_into(const TranscriptSource& source, const fs::path& folder, int depth);
  void look_at(const TranscriptSource& source, const fs::path& path);
  void look_at_changes();
  void look_at_logs();
  void look_at_named(const std::vector<std::string>& paths);
  void adopt(Followed& file, const struct stat& facts);

  // Reading
  [[nodiscard]] Followed* next_file(std::string& path);
  void advance(const std::string& path, Followed& file);
  void read_piece(const std::string& path, Followed& file);
  void read_end(Followed& file);
  [[nodiscard]] SteadyTime end_pauses();
  [[nodiscard]] bool keep_all(const std::string& path, Followed& file);
  [[nodiscard]] bool keep_one(const Batch& batch);
  void begin_again(const Batch& batch);
  [[nodiscard]] Result<WallTime> first_time_of(const Followed& file, const std::string& session);

  [[nodiscard]] std::vector<std::string> take_asked();
  void sleep_until_news(bool has_rest);
  void step(bool paced);
};

void TranscriptFollower::State::look_through() {
  roots.clear();
  look_for_roots();
  look_at_named({named.begin(), named.end()});
  next_look = std::chrono::steady_clock::now() +
              (watch.is_complete() ? look_through_every : look_through_often);
}

/// Looks into the folders that were not there before.
void TranscriptFollower::State::look_for_roots() {
  for (const auto& source : options.sources) {
    std::error_code missing;
    if (source.only_named || source.root.empty() || roots.contains(source.root.string())) continue;
    const auto root = fs::canonical(source.root, missing);
    if (missing) continue;
    roots[source.root.string()] = root.string() + "/";
    look_into(source, root, 0);
  }
  const bool has_all = std::ranges::all_of(options.sources, [this](const auto& source) {
    return source.only_named || roots.contains(source.root.string());
  });
  next_root = has_all ? SteadyTime::max() : std::chrono::steady_clock::now() + look_through_often;
}

/// Returns the source whose folder the path is in; null: none.
const TranscriptSource* TranscriptFollower::State::source_of(const std::string& path) const {
  for (const auto& source : options.sources) {
    const auto root = roots.find(source.root.string());
    if (root != roots.end() && path.starts_with(root->second)) return &source;
  }
  return nullptr;
}

void TranscriptFollower::State::look_into(const TranscriptSource& source, const fs::path& folder,
                                          int depth) {
  if (depth > transcript_place(source.agent).folders_deep) return;
  watch.add(folder);  // first, so nothing that comes meanwhile is missed
  std::error_code trouble_here;
  for (fs::directory_iterator at(folder, trouble_here), end; !trouble_here && at != end;
       at.increment(trouble_here)) {
    std::error_code vanished;
    const auto status = at->symlink_status(vanished);
    if (vanished) continue;
    if (fs::is_directory(status)) {
      look_into(source, at->path(), depth + 1);
    } else if (fs::is_regular_file(status)) {
      look_at(source, at->path());
    }
  }
}

/// Takes over the position of a file that is new here.
void TranscriptFollower::State::adopt(Followed& file, const struct stat& facts) {
  if (const auto* saved = positions.find(file.path)) return file.adopt(*saved);
  // A renamed file keeps its position.
  for (const auto& [other, known] : positions.all()) {
    if (known.position.inode != facts.st_ino || known.position.device != facts.st_dev) continue;
    struct stat there {};
    const bool is_still_there = lstat(other.c_str(), &there) == 0 && there.st_ino == facts.st_ino &&
                                there.st_dev == facts.st_dev;
    if (is_still_there) continue;
    const auto moved = known;
    positions.forget(other);
    file.adopt(moved);
    if (auto kept = positions.put(file.path, moved); !kept) options.log(kept.error().message);
    return;
  }
}

void TranscriptFollower::State::look_at(const TranscriptSource& source, const fs::path& path) {
  if (source.agent == TranscriptAgent::opencode) {
    if (!source.only_named) logs.note(path);
    return;
  }
  const auto form = transcript_form(source.agent, path);
  if (form == TranscriptForm::none) return;
  if (source.only_named && !named.contains(path.string())) return;
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  auto found = files.find(path.string());
  if (found == files.end()) {
    if (files.size() >= transcripts_max) return;
    found = files.try_emplace(path.string(), source.agent, path.string(), form).first;
    adopt(found->second, facts);
  }
  auto& file = found->second;
  const WallTime changed{Millis{facts.st_mtim.tv_sec * 1'000 + facts.st_mtim.tv_nsec / 1'000'000}};
  const bool is_another =
      form == TranscriptForm::lines && file.position &&
      (file.position->inode != facts.st_ino || file.position->offset > facts.st_size);
  file.note(facts.st_size, changed, is_another, system_clock().wall() - options.since);
}

/// Looks at the databases that changed.
void TranscriptFollower::State::look_at_logs() {
  const auto since = system_clock().wall() - options.since;
  for (auto& session : logs.look(options.log)) {
    auto found = files.find(session.path);
    if (found == files.end()) {
      const auto* saved = positions.find(session.path);
      if ((session.changed < since && saved == nullptr) || files.size() >= transcripts_max)
        continue;
      found = files
                  .try_emplace(session.path, TranscriptAgent::opencode, session.path,
                               TranscriptForm::database)
                  .first;
      if (saved != nullptr) found->second.adopt(*saved);
    }
    found->second.note(session.events, session.changed, false, since);
  }
}

void TranscriptFollower::State::look_at_changes() {
  const auto changes = watch.changed();
  if (watch.drain_lost()) next_look = {};
  for (const auto& path : changes) {
    const auto* source = source_of(path.string());
    if (source == nullptr) continue;
    std::error_code vanished;
    if (fs::is_directory(fs::symlink_status(path, vanished))) {
      if (!source->only_named) look_into(*source, path, 1);
    } else {
      look_at(*source, path);
    }
  }
}

void TranscriptFollower::State::look_at_named(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    std::error_code missing;
    const auto real = fs::canonical(path, missing);
    if (missing || named.size() >= transcripts_max) continue;
    for (const auto& source : options.sources) {
      const auto root = source.only_named ? fs::canonical(source.root, missing) : fs::path();
      if (root.empty() || !real.string().starts_with(root.string() + "/")) continue;
      const auto form = transcript_form(source.agent, real);
      if (form == TranscriptForm::none || form == TranscriptForm::database) continue;
      roots[source.root.string()] = root.string() + "/";
      named.insert(real.string());
      watch.add(real.parent_path());
      look_at(source, real);
    }
  }
}

/// Growing files come first, then the newest.
Followed* TranscriptFollower::State::next_file(std::string& path) {
  Followed* best = nullptr;
  figures.behind = 0;
  for (auto& [name, file] : files) {
    if (!file.has_news) continue;
    figures.behind += file.behind();
    const auto rank = [](const Followed& of) { return std::pair(of.grows(), of.changed); };
    if (best != nullptr && rank(*best) >= rank(file)) continue;
    best = &file;
    path = name;
  }
  return best;
}

void TranscriptFollower::State::advance(const std::string& path, Followed& file) {
  if (file.kept_back.empty()) read_piece(path, file);
  if (!keep_all(path, file)) return;
  if (file.is_recording(system_clock().wall() - options.since)) {
    for (const auto& session : file.transcript.sessions()) reported_from.erase(session);
    return file.read_again(options.since);
  }
  if (!file.has_news && !early_ends.is_empty()) {
    for (const auto& end : early_ends.take(file.transcript.sessions())) {
      const auto kept = options.keep(end);
      if (kept) ++figures.reports;
      if (!kept && kept.error().code == ErrorCode::not_found) early_ends.note(end);
    }
  }
  if (!file.position) return;
  if (auto saved =
          positions.put(path, {.position = *file.position, .state = file.transcript.save()});
      !saved)
    options.log(saved.error().message);
  if (options.progress) options.progress(figures);
}

void TranscriptFollower::State::read_piece(const std::string& path, Followed& file) {
  TranscriptFile::Piece piece;
  if (const auto read = file.read(piece, figures); !read) {
    file.has_news = false;
    if (file.form == TranscriptForm::database) logs.note(database_of(path), database_again);
    const bool is_passing = file.form == TranscriptForm::database;
    if (read.error().code == ErrorCode::unavailable && !is_passing)
      options.log(read.error().message);
    return;
  }
  if (piece.skipped > 0) {
    figures.skipped += piece.skipped;
    const bool is_whole = file.form == TranscriptForm::whole;
    options.log("skipped a line of more than " +
                std::to_string(is_whole ? transcript_whole_max
                                        : static_cast<std::int64_t>(transcript_line_max)) +
                " bytes in " + path);
  }
  file.feed(piece, figures);
  if (!piece.is_end) return;
  file.has_news = false;
  if (piece.is_half) {
    if (file.changed > system_clock().wall() - half_for)
      next_look = std::min(next_look, std::chrono::steady_clock::now() + half_again);
    return;
  }
  read_end(file);
  const bool is_quiet = file.written() < system_clock().wall() - quiet_for;
  if (!file.was_read && !file.is_known && is_quiet)
    for (auto& batch : file.transcript.leave(file.recorded_from != WallTime{}))
      file.add(std::move(batch));
  file.was_read = true;
}

/// Nothing more is in the file at the moment.
void TranscriptFollower::State::read_end(Followed& file) {
  const auto rests_after = transcript_place(file.agent).rests_after;
  const bool is_late = file.written() + Millis{rests_after} < system_clock().wall();
  if (rests_after.count() > 0 && !is_once && !is_late) {
    file.rests_at = std::chrono::steady_clock::now() + rests_after;
    return;
  }
  file.rests_at = SteadyTime::max();
  for (auto& batch : file.transcript.pause()) file.add(std::move(batch));
}

/// Reports of the files that were quiet for long enough. Returns when the next one is.
SteadyTime TranscriptFollower::State::end_pauses() {
  auto next = SteadyTime::max();
  const auto now = std::chrono::steady_clock::now();
  for (auto& [path, file] : files) {
    if (file.rests_at <= now && !file.has_news) {
      file.rests_at = SteadyTime::max();
      for (auto& batch : file.transcript.pause()) file.add(std::move(batch));
      file.has_news = !file.kept_back.empty();
    }
    next = std::min(next, file.rests_at);
  }
  return next;
}

/// Returns from when on the session's lines are reported. Another source may have reported what
/// was before.
Result<WallTime> TranscriptFollower::State::first_time_of(const Followed& file,
                                                          const std::string& session) {
  if (const auto known = reported_from.find(session); known != reported_from.end())
    return known->second;
  auto from = std::max(system_clock().wall() - options.since, file.from);
  const auto there = options.look_up(session);
  if (!there) return there.error();
  if (!there->exists && file.recorded_from != WallTime{}) from = file.recorded_from;
  if (there->exists && !file.is_known) from = std::max(from, there->newest - reported_within);
  constexpr std::size_t sessions_max = 16'384;
  if (reported_from.size() >= sessions_max) reported_from.clear();
  return reported_from[session] = from;
}

/// False: some could not be kept now.
bool TranscriptFollower::State::keep_all(const std::string& path, Followed& file) {
  auto& waiting = file.kept_back;
  std::size_t kept = 0;
  for (; kept < waiting.size(); ++kept) {
    auto& batch = waiting[kept];
    const auto from = first_time_of(file, batch.session);
    if (!from) {
      trouble = from.error();
      break;
    }
    const auto all = batch.reports.size();
    std::erase_if(batch.reports, [&](const Report& report) { return *report.at < *from; });
    if (batch.reports.empty()) continue;
    // The session's first prompt is among those that were left out.
    if (batch.reports.size() < all) batch.spec.title = file.transcript.title_of(batch.session);
    if (!keep_one(batch)) break;
    file.is_kept = true;
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(kept));
  if (waiting.empty()) {
    if (trouble) options.log("transcripts are reported again");
    trouble.reset();
    pause = keep_again_first;
    return true;
  }
  file.has_news = true;
  if (pause == keep_again_first)
    options.log("cannot report what is in " + path + ": " + trouble->message +
                ". It is tried again");
  keep_again = std::chrono::steady_clock::now() + pause;
  pause = std::min(2 * pause, keep_again_last);
  return false;
}

bool TranscriptFollower::State::keep_one(const Batch& batch) {
  const auto receipt = options.keep(batch);
  if (receipt) {
    figures.reports += static_cast<std::int64_t>(receipt->accepted);
    if (receipt->created) ++figures.sessions;
    if (receipt->late > 0) begin_again(batch);
    return true;
  }
  const auto& error = receipt.error();
  if (error.code == ErrorCode::unavailable || error.code == ErrorCode::corrupt) {
    trouble = error;
    return false;
  }
  if (error.code == ErrorCode::not_found) {  // the end of a subagent that nobody knows yet
    early_ends.note(batch);
    return true;
  }
  ++figures.refused;
  if (!std::exchange(was_refused, true))
    options.log("the reports of session " + batch.session + " are refused: " + error.message);
  return true;
}

/// A session that had ended goes on, as its agent resumes it: its newer prompts and calls say so.
void TranscriptFollower::State::begin_again(const Batch& batch) {
  const auto there = options.look_up(batch.session);
  if (!there || !there->has_ended) return;
  const bool goes_on = std::ranges::any_of(batch.reports, [&](const Report& report) {
    return (report.kind == ReportKind::user_input || report.kind == ReportKind::tool_call) &&
           *report.at > there->newest;
  });
  if (!goes_on) return;
  Batch start{.session = batch.session, .creation = Creation::refuse, .by = batch.by};
  auto& report = start.reports.emplace_back();
  report.kind = ReportKind::start;
  report.detail = ProcessFacts{};
  report.event_id = batch.reports.front().event_id + ":start";
  (void)options.keep(start);
}

/// Forgets the sessions that are to be forgotten, and returns the files that were named.
std::vector<std::string> TranscriptFollower::State::take_asked() {
  const std::lock_guard guard(asking);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(asked, &count, sizeof count);
  auto paths = std::exchange(to_name, {});
  if (to_forget.empty()) return paths;
  const auto is_forgotten = [&](const std::string& id) {
    return std::ranges::find(to_forget, id) != to_forget.end();
  };
  for (auto& [path, file] : files) {
    const auto state = file.transcript.save();
    const bool is_named = std::ranges::any_of(
        to_forget, [&](const auto& id) { return state.find('"' + id + '"') != state.npos; });
    if (is_named) file.forget();
    std::erase_if(file.kept_back, [&](const Batch& batch) { return is_forgotten(batch.session); });
  }
  std::erase_if(reported_from, [&](const auto& entry) { return is_forgotten(entry.first); });
  (void)early_ends.take(to_forget);
  if (auto erased = positions.erase(to_forget); !erased) options.log(erased.error().message);
  to_forget.clear();
  answered.notify_all();
  return paths;
}

/// True once the descriptor is readable.
static bool is_asked(int descriptor) {
  pollfd waits{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&waits, 1, 0) > 0;
}

void TranscriptFollower::State::sleep_until_news(bool has_rest) {
  const auto now = std::chrono::steady_clock::now();
  auto until = std::min({next_look, next_root, next_rest, logs.next()});
  if (has_rest) until = std::min(until, rest_until);
  if (trouble) until = std::min(next_look, keep_again);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  std::array<pollfd, 3> waits{{{.fd = wake, .events = POLLIN, .revents = 0},
                               {.fd = asked, .events = POLLIN, .revents = 0},
                               {.fd = watch.descriptor(), .events = POLLIN, .revents = 0}}};
  const nfds_t count = trouble || watch.descriptor() < 0 ? 2 : 3;
  if (left > 0) poll(waits.data(), count, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
}

/// Reads a piece, or sleeps until there is something to do.
void TranscriptFollower::State::step(bool paced) {
  look_at_named(take_asked());
  look_at_changes();
  if (std::chrono::steady_clock::now() >= next_look) look_through();
  if (std::chrono::steady_clock::now() >= next_root) look_for_roots();
  look_at_logs();
  next_rest = end_pauses();
  std::string path;
  auto* file = next_file(path);
  if (file == nullptr && options.caught_up) std::exchange(options.caught_up, nullptr)();
  const auto now = std::chrono::steady_clock::now();
  const bool rests = paced && file != nullptr && !file->grows() && now < rest_until;
  if (file == nullptr || rests || (trouble && now < keep_again))
    return sleep_until_news(file != nullptr);
  const bool grows = file->grows();
  const auto before = processor_time();
  advance(path, *file);
  if (grows || options.share >= 1) return;
  const auto used = processor_time() - before + Millis{1};
  rest_until = std::chrono::steady_clock::now() +
               std::chrono::milliseconds(static_cast<std::int64_t>(
                   static_cast<double>(used.count()) * (1 / options.share - 1)));
}

TranscriptFollower::TranscriptFollower(std::unique_ptr<State> state) : state_(std::move(state)) {}
TranscriptFollower::~TranscriptFollower() = default;

Result<std::unique_ptr<TranscriptFollower>> TranscriptFollower::start(Options options) {
  auto state = std::make_unique<State>(std::move(options));
  if (!state->options.positions.empty()) {
    auto positions = Positions::open(state->options.positions);
    if (!positions) return positions.error();
    state->positions = std::move(*positions);
  }
  return std::unique_ptr<TranscriptFollower>(new TranscriptFollower(std::move(state)));
}

void TranscriptFollower::run() {
  while (!is_asked(state_->wake)) state_->step(true);
}

Result<void> TranscriptFollower::run_once() {
  state_->is_once = true;
  state_->look_through();
  state_->look_at_logs();
  std::string path;
  while (auto* file = state_->next_file(path)) {
    if (is_asked(state_->wake)) break;
    state_->advance(path, *file);
    if (state_->trouble) return *state_->trouble;
  }
  return {};
}

void TranscriptFollower::name(const std::string& path) {
  constexpr std::size_t names_max = 1'024;
  const std::lock_guard guard(state_->asking);
  auto& names = state_->to_name;
  if (names.size() >= names_max || std::ranges::find(names, path) != names.end()) return;
  names.push_back(path);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(state_->asked, &one, sizeof one);
}

void TranscriptFollower::forget(std::vector<std::string> sessions) {
  constexpr std::chrono::milliseconds patience{500};
  std::unique_lock guard(state_->asking);
  for (auto& id : sessions) state_->to_forget.push_back(std::move(id));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(state_->asked, &one, sizeof one);
  state_->answered.wait_for(guard, patience, [&] { return state_->to_forget.empty(); });
}

void TranscriptFollower::stop() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(state_->wake, &one, sizeof one);
}

const FollowFigures& TranscriptFollower::figures() const noexcept {
  return state_->figures;
}

}  // namespace watchdog::monitor
