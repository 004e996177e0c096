// A repository's own settings can make `git status` run programs: monitors of files, filters,
// converters, hooks, and helpers that fetch missing objects. Single settings can be overridden, but
// filters and remotes have names that only the repository knows. So git gets a directory of this
// process's own, with an empty configuration, and reads from the repository the index, the objects
// and the files alone. Only the first question is put to the repository itself. It asks where these
// are, and `rev-parse` starts no program.
#include "bundle/git_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "core/scratch_folder.h"
#include "core/time_limit.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

using Path = std::filesystem::path;

struct Repository {
  Path top;     ///< Of its files.
  Path own;     ///< Its index.
  Path shared;  ///< Its objects.
  std::string commit;
  std::string branch;
};

struct Answer {
  std::optional<int> code;  ///< Empty: git did not end by itself.
  std::string text;
  std::string trouble;  ///< The end of what it says on standard error, or why it did not start.
  bool is_cut = false;
};

bool is_own(const Path& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

/// Nothing of the machine's or the user's settings counts.
std::map<std::string, std::string> plain_environment() {
  return {{"GIT_CONFIG_NOSYSTEM", "1"},
          {"GIT_CONFIG_SYSTEM", "/dev/null"},
          {"GIT_CONFIG_GLOBAL", "/dev/null"},
          {"GIT_ATTR_NOSYSTEM", "1"},
          {"GIT_NO_LAZY_FETCH", "1"},
          {"GIT_NO_REPLACE_OBJECTS", "1"},
          {"GIT_OPTIONAL_LOCKS", "0"},
          {"GIT_ALLOW_PROTOCOL", "none"},
          {"LC_ALL", "C"}};
}

/// These would override nothing in a directory of its own, and are here against a second reading.
std::vector<std::string> git_words(const std::vector<std::string>& more) {
  std::vector<std::string> words{"git", "--no-pager", "--no-optional-locks", "--literal-pathspecs"};
  for (const auto* setting :
       {"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null",
        "core.quotePath=true", "core.untrackedCache=false", "diff.external=", "color.ui=false",
        "status.relativePaths=false", "protocol.allow=never"}) {
    words.emplace_back("-c");
    words.emplace_back(setting);
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Answer ask_git(const std::vector<std::string>& words, std::map<std::string, std::string> more,
               const std::stop_token& stop) {
  more.merge(plain_environment());
  const auto end = run_process({.argv = git_words(words),
                                .cwd = "/",
                                .env = std::move(more),
                                .ladder = {.terminate = Millis{200}},
                                .head_bytes = git_bytes_max,
                                .tail_bytes = 0,
                                .drain_grace = Millis{200}},
                               {.stop = stop});
  if (!end) return {.code = {}, .text = {}, .trouble = end.error().message};
  if (end->stopped) return {.code = {}, .text = {}, .trouble = "it took too long"};
  Answer answer{.code = end->code,
                .text = end->head,
                .trouble = end->err_tail,
                .is_cut = end->output_bytes > end->head.size()};
  // A file's name that was cut would look like another file.
  if (answer.is_cut) answer.text.resize(answer.text.rfind('\n') + 1);
  return answer;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

bool is_object_id(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns the repository, or the reason why git is not asked about it.
std::pair<std::optional<Repository>, std::string> find_repository(const Path& folder,
                                                                  const std::stop_token& stop) {
  const auto ask = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"-C", folder.string()});
    return ask_git(words, {}, stop);
  };
  const auto places = ask({"rev-parse", "--path-format=absolute", "--show-toplevel",
                           "--absolute-git-dir", "--git-common-dir"});
  if (!places.code) return {std::nullopt, "git did not answer: " + places.trouble + "."};
  std::istringstream lines(places.text);
  std::string top, own, shared;
  std::getline(std::getline(std::getline(lines, top), own), shared);
  if (*places.code != 0 || shared.empty())
    return {std::nullopt, "the folder is not in a repository that git may read."};
  Repository found{.top = top, .own = own, .shared = shared, .commit = {}, .branch = {}};
  for (const auto& path : {found.top, found.own, found.shared})
    if (!path.is_absolute() || !is_own(path))
      return {std::nullopt, "the repository belongs to another user."};
  std::error_code unknown;
  if (!std::filesystem::exists(found.top / ".git", unknown))
    return {std::nullopt, "the repository's settings name another folder."};
  const auto commit = ask({"rev-parse", "--quiet", "--verify", "HEAD"});
  if (const auto id = first_line(commit.text); is_object_id(id)) found.commit = id;
  found.branch = first_line(ask({"symbolic-ref", "--quiet", "--short", "HEAD"}).text);
  return {std::move(found), {}};
}

bool write_file(const Path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.good();
}

/// Makes what git takes for a repository: a commit, and no settings.
bool fill(const Path& folder, const Repository& repository) {
  const bool is_long = repository.commit.size() == 64;
  std::error_code trouble;
  std::filesystem::create_directory(folder / "refs", trouble);
  return !trouble &&
         write_file(folder / "HEAD", repository.commit.empty() ? "ref: refs/heads/none\n"
                                                               : repository.commit + "\n") &&
         write_file(folder / "config",
                    std::string("[core]\n\trepositoryFormatVersion = ") + (is_long ? "1" : "0") +
                        "\n\tbare = false\n" +
                        (is_long ? "[extensions]\n\tobjectFormat = sha256\n" : ""));
}

/// The answer, with a last line that says if it is not all.
std::string text_of(const Answer& answer, std::string_view question) {
  if (answer.code != 0)
    return std::string(question) + " failed: " + first_line(answer.trouble) + "\n";
  return answer.text + (answer.is_cut ? "… more was left out\n" : "");
}

}  // namespace

GitLook look_with_git(const Path& folder, const std::stop_token& stop) {
  if (!folder.is_absolute()) return {.missing = "the session's folder is not known."};
  if (!is_own(folder))
    return {.missing = "the session's folder is not there, or belongs to another user."};
  const TimeLimit limit(git_time_max, stop);
  auto found = find_repository(folder, limit.token());
  if (!found.first) return {.missing = std::move(found.second)};
  const auto& repository = *found.first;
  const auto own = ScratchFolder::make("git");
  if (!own || !fill(own->path(), repository))
    return {.missing = "no folder for temporary files can be made."};
  const std::map<std::string, std::string> environment{
      {"GIT_DIR", own->path().string()},
      {"GIT_WORK_TREE", repository.top.string()},
      {"GIT_INDEX_FILE", (repository.own / "index").string()},
      {"GIT_OBJECT_DIRECTORY", (repository.shared / "objects").string()}};
  const auto ask = [&](std::vector<std::string> words) {
    const std::vector<std::string> place{
        "-C", repository.top.string(), "-c",
        "core.excludesFile=" + (repository.shared / "info" / "exclude").string()};
    words.insert(words.begin(), place.begin(), place.end());
    return ask_git(words, environment, limit.token());
  };
  const auto status =
      ask({"status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"});
  // The tree without files, where nothing was committed yet.
  const auto stat = repository.commit.empty()
                        ? Answer{.code = 0, .text = {}, .trouble = {}}
                        : ask({"diff", "--stat=120", "--no-ext-diff", "--no-textconv", "--no-color",
                               "--ignore-submodules=all", "HEAD", "--"});
  return {.missing = {},
          .commit = repository.commit,
          .branch = repository.branch,
          .status = text_of(status, "git status"),
          .stat = text_of(stat, "git diff")};
}

}  // namespace watchdog::monitor
