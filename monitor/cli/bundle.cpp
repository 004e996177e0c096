// The archive comes whole, is read once to say what is in it, and is written as it came. A new file
// is made with O_EXCL, so that it replaces nothing. With --force it is written beside the old one
// and then takes its name, so an interruption leaves one of the two.
#include "bundle/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "files/write_all.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "text/figures.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

struct BundleOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;
  std::string file;  ///< Empty: a name made of the session; `-`: standard output.
  bool force = false;
  bool no_git = false;
  bool json = false;
};

/// The content of a file of the archive, in a few words.
std::string_view meaning_of(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> meanings[] = {
      {"README.md", "the verdict, open calls, how to resume"},
      {"session.json", "the progress document"},
      {"explain.json", "the newest changes of health, with their proof"},
      {"events.jsonl", "the newest events"},
      {"processes.txt", "the agent's processes"},
      {"git.txt", "which files changed"}};
  const auto* found = std::ranges::find(meanings, name, [](const auto& one) { return one.first; });
  return found == std::end(meanings) ? "" : found->second;
}

Error cannot_write(const std::string& file, int number) {
  const bool exists = number == EEXIST;
  return {exists ? ErrorCode::conflict : ErrorCode::invalid,
          file + ": " +
              (exists ? "it exists and stays as it is. Use --force to replace it, or name another "
                        "file with -o"
                      : std::generic_category().message(number))};
}

/// A device or a folder of that name stays as it is.
bool is_replaceable(const std::string& file) {
  struct stat facts {};
  return lstat(file.c_str(), &facts) != 0 || S_ISREG(facts.st_mode);
}

/// Only its owner may read it.
Result<void> write_new(const std::string& file, std::string_view bytes, bool force) {
  if (force && !is_replaceable(file))
    return Error{ErrorCode::invalid, file + ": it is not a regular file, so it stays as it is"};
  const auto place = force ? file + ".new" : file;
  if (force) unlink(place.c_str());
  const int descriptor =
      open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return cannot_write(place, errno);
  int number = write_all(descriptor, bytes);
  if (number == 0 && fsync(descriptor) != 0) number = errno;
  close(descriptor);
  if (number == 0 && force && rename(place.c_str(), file.c_str()) != 0) number = errno;
  if (number == 0) return {};
  unlink(place.c_str());
  return cannot_write(file, number);
}

/// The name that the monitor gives to the archive of this session.
std::string usual_name(const std::vector<NamedFile>& files, const std::string& session) {
  const auto found = std::ranges::find(files, "session.json", &NamedFile::name);
  const auto document = found == files.end() ? json() : json::parse(found->content, nullptr, false);
  const auto folder = document.is_object() ? document.value("directory", json()) : json();
  return bundle_file_name(folder.is_string() ? folder.get<std::string>() : "", session);
}

void print_contents(const std::string& file, std::size_t bytes,
                    const std::vector<NamedFile>& files) {
  print_line(file + ": " + grouped(static_cast<std::int64_t>(bytes)) + " bytes");
  Table table({"FILE", "BYTES", "WHAT IT SHOWS"});
  for (const auto& one : files)
    table.add({one.name, grouped(static_cast<std::int64_t>(one.content.size())),
               std::string(meaning_of(one.name))});
  print(table.text(terminal_width()));
  print_line("Read the files before you send them: prompts, commands and answers are in them.");
}

void print_as_json(const std::string& session, const std::string& file, std::size_t bytes,
                   const std::vector<NamedFile>& files) {
  json list = json::array();
  for (const auto& one : files) list.push_back({{"name", one.name}, {"bytes", one.content.size()}});
  print_json(json{{"session", session}, {"file", file}, {"bytes", bytes}, {"files", list}}.dump());
}

}  // namespace

static int bundle(const BundleOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto session = session_of(*endpoint, options.choice);
  if (!session) return complain(session.error());
  bool asks_git = !options.no_git;
  if (asks_git && !options.endpoint.database.empty()) {
    // Without a monitor this command asks git itself, by the same setting.
    const auto settings = read_settings(options.endpoint.sources);
    if (!settings) return settings.error();
    asks_git = settings->recovery.bundle_git;
  }
  const auto archive =
      endpoint->ask(Method::get, "/api/autonomous/sessions/" + url_encoded(*session) +
                                     "/bundle?git=" + (asks_git ? "1" : "0"));
  if (!archive) return complain(archive.error());
  if (options.file == "-") {
    const int number = write_all(STDOUT_FILENO, *archive);
    return number == 0 ? exit_done : complain(cannot_write("standard output", number));
  }
  const auto files = files_in_tar(*archive);
  if (!files) return complain({ErrorCode::unavailable, "the answer is not a bundle"});
  const auto file = options.file.empty() ? usual_name(*files, *session) : options.file;
  if (auto written = write_new(file, *archive, options.force); !written)
    return complain(written.error());
  options.json ? print_as_json(*session, file, archive->size(), *files)
               : print_contents(file, archive->size(), *files);
  return exit_done;
}

void add_bundle(CommandLine& line) {
  const auto options = std::make_shared<BundleOptions>();
  auto* command = line.app.add_subcommand(
      "bundle", "Save the evidence about a session in one file, for a bug report");
  add_session(*command, options->choice);
  command
      ->add_option("-o,--output", options->file,
                   "The file to write, or - for standard output (default: "
                   "watchdog-FOLDER-SESSION.tar here)")
      ->type_name("FILE");
  command->add_flag("--force", options->force, "Replace the file if it exists");
  command->add_flag("--no-git", options->no_git, "Leave out which files git says have changed");
  command->add_flag("--json", options->json, "Print one JSON object");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    need_session(options->choice);
    if (options->file == "-" && options->json)
      throw CLI::ValidationError("--json", "the archive goes to standard output; name a file");
    line.code = bundle(*options);
  });
}

}  // namespace watchdog::monitor
