// One JSON object a line; the newest line of a path counts. A line is appended by one write, so a
// crash leaves at most one half line, at the end, which is left out. The lock is on the file
// itself: a process that waited for a lock looks whether the name still leads to the file that it
// locked.
#include "follow/positions.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "codec/json.h"
#include "facts/digest.h"
#include "files/durable_file.h"
#include "files/open_file.h"
#include "files/write_all.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t positions_bytes_max = 64UL * 1024 * 1024;
constexpr std::size_t anew_bytes_min = 256UL * 1024;

std::string position_line(const std::string& path, const SavedTranscript& saved) {
  const auto& at = saved.position;
  return json{{"file", path},        {"device", at.device},        {"inode", at.inode},
              {"offset", at.offset}, {"headBytes", at.head_bytes}, {"head", at.head},
              {"tail", at.tail},     {"skips", at.is_skipping},    {"state", saved.state}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

void read_position(std::string_view line, std::map<std::string, SavedTranscript>& all) {
  if (!is_json(line)) return;
  const auto from = json::parse(line, nullptr, false);
  if (!from.is_object()) return;
  const auto number = [&](const char* name) {
    const auto found = from.find(name);
    return found != from.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  const auto text = [&](const char* name) {
    const auto found = from.find(name);
    return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto path = text("file");
  if (path.empty()) return;
  all[path] = {.position = {.device = static_cast<std::uint64_t>(number("device")),
                            .inode = static_cast<std::uint64_t>(number("inode")),
                            .offset = std::max<std::int64_t>(number("offset"), 0),
                            .head_bytes = std::max<std::int64_t>(number("headBytes"), 0),
                            .head = static_cast<std::uint64_t>(number("head")),
                            .tail = static_cast<std::uint64_t>(number("tail")),
                            .is_skipping = from.value("skips", json()) == json(true)},
               .state = text("state")};
}

/// The name of a path that must not be in the file.
std::string digest_name(const std::string& path) {
  return "#" + std::to_string(digest_of(path));
}

Error positions_trouble(const std::filesystem::path& path, const char* what, int code) {
  return {ErrorCode::unavailable,
          std::string(what) + " " + path.string() + ": " + std::strerror(code)};  // NOLINT
}

/// Opens and locks the file that the path names.
Result<int> locked_file(const std::filesystem::path& path) {
  for (int tries = 0; tries < 8; ++tries) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg,hicpp-vararg): POSIX
    const int descriptor = ::open(
        path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (descriptor < 0) return positions_trouble(path, "cannot open", errno);
    struct stat facts {};
    struct stat named {};
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor);
      return Error{ErrorCode::conflict, path.string() +
                                            " is in use: another process follows these "
                                            "transcripts for the same monitor. Stop one of them"};
    }
    const bool known = fstat(descriptor, &facts) == 0 && lstat(path.c_str(), &named) == 0;
    if (known && facts.st_ino == named.st_ino && facts.st_dev == named.st_dev) {
      const bool is_own = facts.st_uid == geteuid() && (facts.st_mode & 077U) == 0;
      if (S_ISREG(facts.st_mode) && is_own) return descriptor;
      close(descriptor);
      return Error{ErrorCode::invalid,
                   path.string() + " must be a regular file that only you may read"};
    }
    close(descriptor);  // it was replaced meanwhile
  }
  return Error{ErrorCode::unavailable, "cannot lock " + path.string()};
}

}  // namespace

Positions::~Positions() {
  if (descriptor_ >= 0) close(descriptor_);
}
Positions::Positions(Positions&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      live_bytes_(other.live_bytes_),
      all_(std::move(other.all_)) {}
Positions& Positions::operator=(Positions&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(live_bytes_, other.live_bytes_);
  std::swap(all_, other.all_);
  return *this;
}

Result<Positions> Positions::open(std::filesystem::path path) {
  (void)make_folders(path.parent_path(), 0700);  // opening the file says why
  const auto descriptor = locked_file(path);
  if (!descriptor) return descriptor.error();
  if (const auto folder = directory_of(path)) (void)folder.sync();  // the file's name
  Positions positions;
  positions.path_ = std::move(path);
  positions.descriptor_ = *descriptor;
  std::string text;
  std::string piece(64UL * 1024, '\0');
  while (text.size() < positions_bytes_max) {
    const auto got = ::read(*descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return positions_trouble(positions.path_, "cannot read", errno);
    if (got == 0) break;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  std::string_view rest = text;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    read_position(rest.substr(0, end), positions.all_);
    rest.remove_prefix(end + 1);
  }
  positions.bytes_ = text.size();
  // A half line would be continued by the next one.
  if (!rest.empty() || positions.bytes_ > anew_bytes_min) {
    if (auto written = positions.write_anew(); !written) return written.error();
  }
  return positions;
}

const SavedTranscript* Positions::find(const std::string& path) const {
  auto found = all_.find(path);
  if (found == all_.end()) found = all_.find(digest_name(path));
  return found == all_.end() ? nullptr : &found->second;
}

Result<void> Positions::erase(std::span<const std::string> sessions) {
  std::map<std::string, SavedTranscript> left;
  bool is_changed = false;
  for (auto& entry : all_) {
    const bool is_named = std::ranges::any_of(sessions, [&](const std::string& id) {
      return entry.first.find(id) != std::string::npos ||
             entry.second.state.find('"' + id + '"') != std::string::npos;
    });
    if (is_named && !entry.first.starts_with('#')) {
      is_changed = true;
      left[digest_name(entry.first)] = {.position = entry.second.position};
    } else {
      left[entry.first] = std::move(entry.second);
    }
  }
  all_ = std::move(left);
  return is_changed && descriptor_ >= 0 ? write_anew() : Result<void>{};
}

Result<void> Positions::put(const std::string& path, SavedTranscript saved) {
  const auto line = position_line(path, saved);
  all_.erase(digest_name(path));
  const bool is_first = all_.insert_or_assign(path, std::move(saved)).second;
  if (descriptor_ < 0) return {};
  int code = write_all(descriptor_, line);
  // Without a position the next start would leave out lines that are older than the session's
  // newest report. An older position only makes it read some lines again.
  if (code == 0 && is_first && fdatasync(descriptor_) != 0) code = errno;
  if (code != 0) return positions_trouble(path_, "cannot write", code);
  bytes_ += line.size();
  if (bytes_ > anew_bytes_min && bytes_ > 4 * live_bytes_) return write_anew();
  return {};
}

Result<void> Positions::write_anew() {
  DurableFile made(path_);
  if (!made.file()) return positions_trouble(path_, "cannot write", errno);
  const int descriptor = made.file().fd();
  std::string text;
  for (const auto& [path, saved] : all_) text += position_line(path, saved);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg,hicpp-vararg): POSIX
  const bool appends = fcntl(descriptor, F_SETFL, O_APPEND) == 0;
  int code = appends && flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (code == 0) code = write_all(descriptor, text);
  if (code == 0) code = made.place();
  const int kept = code == 0 ? made.duplicate() : -1;
  if (code == 0 && kept < 0) code = errno;
  if (code != 0) return positions_trouble(path_, "cannot write", code);
  close(std::exchange(descriptor_, kept));
  bytes_ = live_bytes_ = text.size();
  return {};
}

}  // namespace watchdog::monitor
