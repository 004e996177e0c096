// `ahead_` is the stack of names that are still to be followed. Each step opens one of them in the
// directory reached so far; a link's target goes onto the stack, and `..` drops the latest
// directory. An absolute path or link starts again at the innermost root that contains it, or
// fails. After the first missing name the rest is only collected. Bounds on parts and links end
// every walk.
#include "files/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "privacy/content.h"

namespace watchdog {
namespace {

/// Each part holds a descriptor while its path is followed.
constexpr std::size_t parts_max = 128;
constexpr int links_max = 40;  // as Linux
constexpr std::size_t shown_chars_max = 200;

/// Returns the path below the directory; nothing if the path is not in it.
std::optional<std::string_view> below(const std::filesystem::path& directory,
                                      std::string_view path) {
  const auto& prefix = directory.native();
  if (prefix == "/") return path;
  if (!path.starts_with(prefix)) return std::nullopt;
  path.remove_prefix(prefix.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return path;
}

class Walk {
 public:
  Walk(const std::vector<Root>& roots, std::string_view path) : roots_(roots), path_(path) {}

  Result<Place> run() && {
    if (path_.empty()) return refusal("is empty");
    if (path_.size() >= PATH_MAX)
      return refusal("has " + std::to_string(path_.size()) + " bytes; at most " +
                     std::to_string(PATH_MAX - 1) + " are allowed");
    if (path_.find('\0') != std::string_view::npos) return refusal("holds a NUL");
    place_.root = &roots_.front();
    follow(path_);
    while (!error_ && !ahead_.empty()) {
      const auto name = std::move(ahead_.back());
      ahead_.pop_back();
      step(name);
    }
    if (error_) return std::move(*error_);
    return std::move(place_);
  }

 private:
  [[nodiscard]] Error refusal(const std::string& what) const {
    return {ErrorCode::invalid,
            "\"" + std::string(first_characters(path_, shown_chars_max)) + "\" " + what, "path"};
  }
  [[nodiscard]] Error leads_out() const {
    return refusal("leads out of the workspace " + roots_.front().path.string());
  }
  [[nodiscard]] std::string here() const { return "\"" + place_.path().string() + "\""; }

  /// The path's parts come next: a link's target, or all of it.
  void follow(std::string_view path) {
    if (path.starts_with('/') && !enter_root(path)) {
      error_ = leads_out();
      return;
    }
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < path.size();) {
      const auto end = std::min(path.find('/', at), path.size());
      if (const auto part = path.substr(at, end - at); !part.empty() && part != ".")
        parts.emplace_back(part);
      at = end + 1;
    }
    ahead_.insert(ahead_.end(), std::make_move_iterator(parts.rbegin()),
                  std::make_move_iterator(parts.rend()));
  }

  /// Takes the innermost root that the absolute path lies in, and leaves what follows.
  bool enter_root(std::string_view& path) {
    std::optional<std::string_view> rest;
    for (const auto& root : roots_) {
      for (const auto* prefix : {&root.path, &root.spelled}) {
        const auto found = below(*prefix, path);
        if (!found || (rest && found->size() >= rest->size())) continue;
        rest = found;
        place_ = Place{.root = &root};
      }
    }
    if (rest) path = *rest;
    return rest.has_value();
  }

  void step(const std::string& name) {
    if (place_.file) {
      error_ = refusal("goes through " + here() + ", which is not a directory");
    } else if (name == "..") {
      step_back();
    } else if (place_.names.size() >= parts_max || name.size() > NAME_MAX) {
      error_ = refusal("is too long: at most " + std::to_string(parts_max) + " parts of " +
                       std::to_string(NAME_MAX) + " bytes are followed");
    } else if (place_.missing > 0) {
      place_.names.push_back(name);
      ++place_.missing;
    } else {
      step_into(name);
    }
  }

  void step_back() {
    if (place_.missing > 0) {
      error_ = refusal("goes through " + here() + ", which is not there");
    } else if (place_.names.empty()) {
      error_ = leads_out();
    } else {
      place_.names.pop_back();
      place_.above.pop_back();
    }
  }

  void step_into(const std::string& name) {
    auto found = open_at(place_.directory(), name, O_PATH);
    struct stat facts {};
    if (!found && errno == ENOENT) {
      place_.names.push_back(name);
      place_.missing = 1;
    } else if (!found || fstat(found.fd(), &facts) != 0) {
      error_ = file_error(here() + " / \"" + name + "\"", errno);
    } else if (S_ISLNK(facts.st_mode)) {
      follow_link(found);
    } else {
      place_.names.push_back(name);
      if (S_ISDIR(facts.st_mode)) {
        place_.above.push_back(std::move(found));
      } else {
        place_.file = std::move(found);
      }
    }
  }

  void follow_link(const OpenFile& link) {
    std::array<char, PATH_MAX> target{};
    const auto size = readlinkat(link.fd(), "", target.data(), target.size());
    if (size <= 0) {
      error_ = file_error(here(), size < 0 ? errno : ENOENT);
    } else if (++links_ > links_max) {
      error_ = refusal("goes through more than " + std::to_string(links_max) + " links");
    } else {
      follow({target.data(), static_cast<std::size_t>(size)});
    }
  }

  const std::vector<Root>& roots_;
  std::string_view path_;
  Place place_;
  std::vector<std::string> ahead_;  ///< The next one last.
  int links_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::filesystem::path Place::path() const {
  auto path = root->path;
  for (const auto& name : names) path /= name;
  return path;
}

Result<Place> walk(const std::vector<Root>& roots, std::string_view path) {
  return Walk(roots, path).run();
}

}  // namespace watchdog
