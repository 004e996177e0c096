// The files of an agent on a disk that loses power: numbers of tool calls, stored outputs and
// checkpoints. All that the library acknowledged must be there after any cut.
//
// Usage: agent_files use FOLDER FILE    Makes them in FOLDER; checkpoints are of FILE. Each thing
//                                       becomes a note of the recording disk that FOLDER is on.
//        agent_files look FOLDER FILE   Reads the notes as lines `WORD NAME CONTENT`, and prints
//                                       one line for each fault.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "watchdog/artifact_store.h"
#include "watchdog/tool_outcome.h"
#include "watchdog/workspace.h"

namespace {

namespace fs = std::filesystem;
using watchdog::ArtifactStore;
using watchdog::CheckpointStore;
using watchdog::EpochSource;

constexpr int rounds = 12;

template <class T>
T needed(watchdog::Result<T> result) {
  if (result) return std::move(*result);
  std::cout << result.error().message << std::endl;
  std::exit(1);
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Stores {
  explicit Stores(const fs::path& folder)
      : artifacts(needed(ArtifactStore::open(folder / "artifacts", "run"))),
        checkpoints(needed(CheckpointStore::open(folder / "checkpoints"))) {}
  ArtifactStore artifacts;
  CheckpointStore checkpoints;
};

void note(int notes, const char* word, const std::string& name, const std::string& content) {
  const std::string text =
      std::string("{\"") + word + "\": [\"" + name + "\", \"" + content + "\"]}";
  if (write(notes, text.data(), text.size()) < 0) std::abort();
}

void use(const fs::path& folder, const fs::path& file) {
  const int notes = open((folder / ".note").c_str(), O_WRONLY | O_CLOEXEC);
  Stores stores(folder);
  for (int round = 1; round <= rounds; ++round) {
    // Each source takes a new range of numbers out of the file.
    auto source = needed(EpochSource::open(folder / "numbers"));
    note(notes, "number", std::to_string(needed(source.next())), "-");
    const std::string content = "content" + std::to_string(round);
    write_file(file, content);
    const fs::path paths[] = {file};
    const auto checkpoint = needed(stores.checkpoints.snapshot(paths, "call" + content));
    note(notes, "checkpoint", checkpoint, content);
    write_file(file, "changed");
    if (auto sealed = stores.checkpoints.seal(checkpoint); !sealed) std::abort();
    std::string output = content;
    while (output.size() < 20'000) output += content;
    note(notes, "artifact", needed(stores.artifacts.put(output, "text/plain")).sha256, content);
  }
}

void look(const fs::path& folder, const fs::path& file) {
  Stores stores(folder);
  auto source = needed(EpochSource::open(folder / "numbers"));
  const auto next = needed(source.next());
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word, name, content;
    words >> word >> name >> content;
    if (word == "number" && next <= std::stoull(name))
      std::cout << "the number " << name << " can be given again\n";
    if (word == "checkpoint") {
      const auto restored = stores.checkpoints.restore(name, true);
      if (!restored)
        std::cout << "checkpoint " << name << ": " << restored.error().message << "\n";
      else if (text_of(file) != content)
        std::cout << "checkpoint " << name << " restores " << text_of(file) << "\n";
    }
    if (word == "artifact") {
      const auto page = stores.artifacts.read("art_" + name, 0);
      if (!page)
        std::cout << "output " << name << ": " << page.error().message << "\n";
      else if (!page->bytes.starts_with(content + content))
        std::cout << "output " << name << " is another one\n";
    }
  }
  // A cut leaves nothing that keeps an agent from its work.
  (void)needed(stores.artifacts.put("one more", "text/plain"));
  const fs::path paths[] = {file};
  (void)needed(stores.checkpoints.snapshot(paths, "one more"));
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string action = words[1];
  if (action == "use")
    use(words[2], words[3]);
  else
    look(words[2], words[3]);
  return 0;
}
