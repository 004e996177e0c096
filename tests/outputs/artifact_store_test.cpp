#include "watchdog/artifact_store.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "files/sha256.h"
#include "support/manual_clock.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Millis hour = 1h;

ArtifactRef stored(ArtifactStore& store, std::string_view bytes) {
  auto ref = store.put(bytes, "text/plain");
  EXPECT_TRUE(ref.ok()) << ref.error().message;
  return ref ? *ref : ArtifactRef{};
}

std::string contents(const ArtifactStore& store, const std::string& handle) {
  std::string all;
  while (true) {
    const auto page = store.read(handle, all.size());
    if (!page) return "error: " + page.error().message;
    if (page->bytes.empty()) return all;
    all += page->bytes;
  }
}

ErrorCode refusal(const Result<ArtifactPage>& page) {
  EXPECT_FALSE(page.ok());
  return page ? ErrorCode::cancelled : page.error().code;
}

/// As long as asked for, and the same for the same seed.
std::string noise(std::size_t bytes, unsigned seed = 1) {
  std::minstd_rand random(seed);
  std::string text(bytes, '\0');
  for (auto& c : text) c = static_cast<char>(random() >> 8U);
  return text;
}

class ArtifactStoreTest : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;

  ArtifactStore open(const std::string& run = "run-1", ArtifactLimits limits = {}) {
    auto store = ArtifactStore::open(dir / "artifacts", run, limits, clock);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(*store);
  }
  [[nodiscard]] std::vector<fs::path> files(const std::string& below) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(dir / "artifacts" / below))
      if (!entry.is_directory()) found.push_back(entry.path());
    return found;
  }
  [[nodiscard]] std::vector<fs::path> objects() const { return files("objects"); }
};

TEST(Sha256, digests_are_those_of_the_standard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(ArtifactStoreTest, stored_bytes_are_read_back_unchanged) {
  auto store = open();
  const auto bytes = std::string("\x1b[31mred\0\r\xff", 11) + noise(200'000);
  const auto ref = stored(store, bytes);
  EXPECT_EQ(ref.sha256, sha256_of(bytes));
  EXPECT_EQ(ref.bytes, bytes.size());
  EXPECT_EQ(ref.kept, bytes.size());
  EXPECT_EQ(ref.media_type, "text/plain");
  EXPECT_EQ(ref.handle, "art_" + ref.sha256.substr(0, 12));
  EXPECT_EQ(contents(store, ref.handle), bytes);
  EXPECT_EQ(contents(store, "art_" + ref.sha256), bytes);
  EXPECT_EQ(contents(store, stored(store, "").handle), "");
}

TEST_F(ArtifactStoreTest, it_is_for_its_owner_alone) {
  auto store = open();
  stored(store, "x");
  const auto mode = [](const fs::path& path) {
    struct stat facts {};
    EXPECT_EQ(stat(path.c_str(), &facts), 0);
    return facts.st_mode & 0777U;
  };
  EXPECT_EQ(mode(dir / "artifacts"), 0700U);
  EXPECT_EQ(mode(dir / "artifacts" / "objects"), 0700U);
  ASSERT_EQ(objects().size(), 1U);
  EXPECT_EQ(mode(objects()[0]), 0600U);
  EXPECT_EQ(mode(objects()[0].parent_path()), 0700U);
}

TEST_F(ArtifactStoreTest, the_same_content_is_there_once_and_other_content_beside_it) {
  auto store = open();
  constexpr int threads = 32;
  std::vector<std::thread> all;
  std::vector<ArtifactRef> same(threads);
  std::vector<ArtifactRef> own(threads);
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      same[i] = stored(store, "the same for all");
      own[i] = stored(store, "of thread " + std::to_string(i));
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(std::set<std::string>({same.front().handle, same.back().handle}).size(), 1U);
  EXPECT_EQ(objects().size(), 1U + threads);
  EXPECT_EQ(files("tmp").size(), 0U);
  for (int i = 0; i < threads; ++i) {
    EXPECT_EQ(same[i], same[0]);
    EXPECT_EQ(contents(store, own[i].handle), "of thread " + std::to_string(i));
  }
}

TEST_F(ArtifactStoreTest, processes_share_a_directory) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = ArtifactStore::open(dir / "artifacts", "run-" + std::to_string(i));
      bool fine = store.ok();
      for (int n = 0; n < 20 && fine; ++n) {
        fine = store->put("shared " + std::to_string(n), "text/plain").ok() &&
               store->put(std::to_string(i) + " " + std::to_string(n), "text/plain").ok() &&
               store->collect_garbage().ok();
      }
      _exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const auto child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(objects().size(), 20U + 4 * 20U);
}

TEST_F(ArtifactStoreTest, a_page_is_bounded_and_says_where_it_is) {
  auto store = open();
  const auto bytes = noise(3 * ArtifactStore::page_bytes_max);
  const auto ref = stored(store, bytes);
  const auto page = store.read(ref.handle, 5, SIZE_MAX);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->bytes, bytes.substr(5, ArtifactStore::page_bytes_max));
  EXPECT_EQ(page->offset, 5U);
  EXPECT_EQ(page->total, bytes.size());
  EXPECT_EQ(store.read(ref.handle, bytes.size() - 3)->bytes, bytes.substr(bytes.size() - 3));
  EXPECT_EQ(store.read(ref.handle, bytes.size())->bytes, "");
  EXPECT_EQ(store.read(ref.handle, 7, 0)->bytes, "");
  EXPECT_EQ(refusal(store.read(ref.handle, bytes.size() + 1)), ErrorCode::invalid);
  EXPECT_EQ(refusal(store.read(ref.handle, UINT64_MAX)), ErrorCode::invalid);
}

TEST_F(ArtifactStoreTest, hostile_names_are_refused) {
  auto store = open();
  const auto ref = stored(store, "content");
  std::ofstream(dir / "artifacts" / "secret") << "secret";
  for (const std::string name :
       {"", "art_", "art_*", "art_../../../../etc/passwd", "../secret", "/etc/passwd",
        "art_../secret", "art_3f2a9c", "art_ABCDEFABCDEF", "ART_abcdefabcdef", "art_abcdefabcde\n",
        "art_abcdefabcde/", "art_abcdefabcdeg", "art_????????????", "objects/ab", "%61rt_"}) {
    EXPECT_EQ(refusal(store.read(name, 0)), ErrorCode::invalid) << name;
  }
  EXPECT_EQ(refusal(store.read(std::string("art_abcdefabcdef\0x", 18), 0)), ErrorCode::invalid);
  EXPECT_EQ(refusal(store.read("art_" + ref.sha256 + "0", 0)), ErrorCode::invalid);
  EXPECT_EQ(refusal(store.read("art_" + std::string(100'000, 'a'), 0)), ErrorCode::invalid);
  EXPECT_EQ(refusal(store.read("art_000000000000", 0)), ErrorCode::not_found);
  EXPECT_EQ(store.pin({.sha256 = "../../etc/passwd"}).error().code, ErrorCode::invalid);
  EXPECT_EQ(store.pin({.sha256 = std::string(64, '0')}).error().code, ErrorCode::not_found);
}

TEST_F(ArtifactStoreTest, hostile_names_of_runs_are_refused_and_odd_ones_stay_inside) {
  for (const std::string run : {"", ".", "..", "a/b", "../x", "a b", "a~b", "a\nb"}) {
    const auto store = ArtifactStore::open(dir / "artifacts", run);
    ASSERT_FALSE(store.ok()) << run;
    EXPECT_EQ(store.error().code, ErrorCode::invalid);
  }
  EXPECT_FALSE(ArtifactStore::open(dir / "artifacts", std::string(129, 'a')).ok());
  for (const std::string& run :
       {std::string("..."), std::string("a@b:c.d_e-f"), std::string(128, 'a')}) {
    auto store = open(run);
    EXPECT_EQ(contents(store, stored(store, run).handle), run);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

TEST_F(ArtifactStoreTest, contents_that_begin_alike_get_longer_names) {
  // Found by search: their digests share the first 48 bits.
  const std::string one = "output 304327";
  const std::string other = "output 47003101";
  ASSERT_EQ(sha256_of(one).substr(0, 12), sha256_of(other).substr(0, 12));
  auto store = open();
  const auto first = stored(store, one);
  EXPECT_EQ(first.handle.size(), 4U + 12U);
  EXPECT_EQ(contents(store, first.handle), one);
  const auto second = stored(store, other);
  EXPECT_GT(second.handle.size(), 4U + 12U);
  EXPECT_EQ(contents(store, second.handle), other);
  EXPECT_EQ(refusal(store.read(first.handle, 0)), ErrorCode::conflict);
  EXPECT_EQ(contents(store, stored(store, one).handle), one);
}

TEST_F(ArtifactStoreTest, of_too_much_the_first_and_the_last_half_are_kept) {
  const ArtifactLimits limits{.artifact_bytes_max = 1'001};
  auto store = open("run", limits);
  for (const std::size_t bytes : {1'000, 1'001, 1'002, 1'500, 1'501, 2'000, 5'000, 200'000}) {
    const auto given = noise(bytes, static_cast<unsigned>(bytes));
    const auto kept = bytes <= 1'001 ? given : given.substr(0, 501) + given.substr(bytes - 500);
    const auto ref = stored(store, given);
    EXPECT_EQ(ref.bytes, bytes);
    EXPECT_EQ(ref.kept, kept.size());
    EXPECT_EQ(ref.sha256, sha256_of(given));
    EXPECT_EQ(contents(store, ref.handle), kept) << bytes;
    EXPECT_EQ(store.read(ref.handle, 490, 11)->bytes, kept.substr(490, 11)) << bytes;
    EXPECT_EQ(store.read(ref.handle, 501, 30)->bytes, kept.substr(501, 30)) << bytes;
    EXPECT_EQ(stored(store, given), ref);
  }
}

TEST_F(ArtifactStoreTest, no_page_joins_what_was_not_together) {
  for (const std::uint64_t most : {1U, 2U, 1'001U}) {
    const auto run = "run-" + std::to_string(most);
    auto store = open(run, {.artifact_bytes_max = most});
    const auto first = most - most / 2;
    for (const std::size_t bytes : {1'002U, 1'501U, 2'000U, 5'000U}) {
      const auto given = noise(bytes, static_cast<unsigned>(10'000 * most + bytes));
      const auto handle = stored(store, given).handle;
      for (std::uint64_t offset = 0; offset <= most; offset += 1 + most / 50) {
        for (const std::size_t size : {1U, 7U, 600U, 60'000U}) {
          const auto page = store.read(handle, offset, size);
          ASSERT_TRUE(page.ok());
          EXPECT_EQ(page->dropped, bytes - most);
          EXPECT_EQ(page->dropped_at, first);
          // What was together: at its place in the first half, or counted from the end.
          const auto at = offset < first ? offset : bytes - (most - offset);
          EXPECT_EQ(page->bytes, given.substr(at, page->bytes.size()))
              << offset << " of " << bytes << ", " << size << " at once";
          EXPECT_EQ(page->bytes.empty(), offset == most);
        }
      }
    }
  }
  auto store = open("whole");
  EXPECT_EQ(store.read(stored(store, "all of it").handle, 0)->dropped, 0U);
}

TEST_F(ArtifactStoreTest, a_cut_output_is_replaced_when_all_of_it_may_be_kept) {
  const auto given = noise(5'000);
  const auto small = [&] {
    auto store = open("run", {.artifact_bytes_max = 1'000});
    return stored(store, given);
  }();
  EXPECT_EQ(small.kept, 1'000U);
  auto store = open("run");
  const auto whole = stored(store, given);
  EXPECT_EQ(whole.kept, 5'000U);
  EXPECT_EQ(contents(store, small.handle), given);
  EXPECT_EQ(objects().size(), 1U);
  auto again = open("run", {.artifact_bytes_max = 1'000});
  EXPECT_EQ(stored(again, given).kept, 5'000U);
}

TEST_F(ArtifactStoreTest, a_sink_stores_what_came_in_pieces_of_any_size) {
  std::minstd_rand random(random_seed());
  const ArtifactLimits limits{.artifact_bytes_max = 300'000};
  auto store = open("run", limits);
  for (int round = repetitions(100); round > 0; --round) {
    auto given = noise(random() % 1'000'000, static_cast<unsigned>(round));
    std::ranges::replace(given, '@',
                         'a');  // else there are a URL's credentials in it, now and then
    auto sink = store.sink();
    for (std::size_t at = 0; at < given.size();) {
      const auto piece = random() % (round % 2 == 0 ? 200'000 : 5'000);
      sink.write(std::string_view(given).substr(at, piece));
      at += piece;
    }
    const auto ref = sink.finish("application/octet-stream");
    ASSERT_TRUE(ref.ok()) << ref.error().message;
    EXPECT_EQ(*ref, *store.put(given, "application/octet-stream"));
    const auto kept = given.size() <= limits.artifact_bytes_max
                          ? given
                          : given.substr(0, 150'000) + given.substr(given.size() - 150'000);
    EXPECT_EQ(contents(store, ref->handle), kept) << given.size();
    EXPECT_EQ(sink.finish("text/plain").error().code, ErrorCode::invalid);
  }
  EXPECT_EQ(files("tmp").size(), 0U);
}

TEST_F(ArtifactStoreTest, a_sink_that_is_given_up_leaves_nothing) {
  auto store = open();
  {
    auto sink = store.sink();
    sink.write(noise(500'000));
    EXPECT_EQ(files("tmp").size(), 1U);
  }
  EXPECT_EQ(files("tmp").size(), 0U);
  EXPECT_EQ(objects().size(), 0U);
}

TEST_F(ArtifactStoreTest, a_torn_object_is_found_when_it_is_read_and_mended_when_it_is_put_again) {
  auto store = open("run", {.artifact_bytes_max = 2'000});
  for (const std::size_t bytes : {1'500, 9'000}) {
    const auto given = noise(bytes, static_cast<unsigned>(bytes));
    const auto ref = stored(store, given);
    const auto kept = contents(store, ref.handle);
    const auto path = objects().at(0);
    const auto size = fs::file_size(path);
    const auto expect_torn = [&](const std::string& how) {
      EXPECT_EQ(refusal(store.read(ref.handle, 0)), ErrorCode::corrupt) << how << " of " << bytes;
      EXPECT_EQ(stored(store, given), ref);
      EXPECT_EQ(contents(store, ref.handle), kept) << how << " of " << bytes;
    };
    for (const std::uintmax_t torn : {std::uintmax_t{0}, std::uintmax_t{1}, size / 2, size - 1}) {
      fs::resize_file(path, torn);
      expect_torn("torn to " + std::to_string(torn));
    }
    for (const std::uintmax_t at : {std::uintmax_t{0}, size / 2, size - 1, size - 100}) {
      {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(at));
        const int old = file.get();
        file.seekp(static_cast<std::streamoff>(at));
        file.put(static_cast<char>(old ^ 0x41));
      }
      // The last byte of a footer is an end of a line that nobody reads.
      if (bytes == 9'000 && at == size - 1) continue;
      expect_torn("byte " + std::to_string(at));
    }
    std::ofstream(path, std::ios::app) << "more";
    expect_torn("longer");
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    expect_torn("a pipe");
    fs::remove(path);
    fs::create_symlink("/etc/passwd", path);
    EXPECT_EQ(refusal(store.read(ref.handle, 0)), ErrorCode::not_found);
    EXPECT_EQ(contents(store, stored(store, given).handle), kept);
    fs::remove(path);
  }
}

TEST_F(ArtifactStoreTest, an_unfinished_file_of_a_killed_process_is_collected) {
  for (const bool finish : {false, true}) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto store = ArtifactStore::open(dir / "artifacts", "killed");
      auto sink = store->sink();
      sink.write(noise(300'000));
      if (finish && !sink.finish("text/plain").ok()) _exit(1);
      if (write(pipe_ends[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    }
    char ready = 0;
    ASSERT_EQ(read(pipe_ends[0], &ready, 1), 1);
    auto store = open("other");
    EXPECT_EQ(files("tmp").size(), finish ? 0U : 1U) << "it is alive and goes on writing";
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    const auto dropped = store.collect_garbage();
    ASSERT_TRUE(dropped.ok());
    EXPECT_EQ(*dropped, finish ? 0U : 1U);
    EXPECT_EQ(files("tmp").size(), 0U);
    EXPECT_EQ(objects().size(), finish ? 1U : 0U) << "what is complete outlives its process";
  }
}

TEST_F(ArtifactStoreTest, an_artifact_of_a_living_run_is_kept_at_any_age) {
  auto mine = open("mine");
  const auto kept = stored(mine, "kept");
  {
    auto other = open("other");
    stored(other, "dropped");
    clock.advance(2 * 24 * hour);
  }
  clock.advance(6 * 24 * hour);
  EXPECT_EQ(*mine.collect_garbage(), 0U) << "it was owned until six days ago";
  clock.advance(2 * 24 * hour);
  EXPECT_EQ(*mine.collect_garbage(), 1U);
  EXPECT_EQ(contents(mine, kept.handle), "kept");
  EXPECT_EQ(files("runs").size(), 1U);
}

TEST_F(ArtifactStoreTest, a_wrong_wall_clock_drops_nothing_by_age) {
  constexpr Millis forty_days{40LL * 24 * 3'600'000};
  const auto kept = [&] {
    auto store = open("ended");
    return stored(store, "kept");
  }();
  auto store = open("living");
  for (const auto wrong : {forty_days, -forty_days}) {
    clock.set_wrong(wrong);
    EXPECT_EQ(*store.collect_garbage(), 0U);
    EXPECT_EQ(*open("another").collect_garbage(), 0U);
    [[maybe_unused]] const auto put = [&] {
      auto meanwhile = open("meanwhile");
      return stored(meanwhile, "put at a wrong time");
    }();
    clock.set_wrong(Millis{0});
    EXPECT_EQ(*store.collect_garbage(), 0U);
  }
  EXPECT_EQ(contents(store, kept.handle), "kept");
  clock.advance(8 * 24 * hour);
  EXPECT_EQ(*store.collect_garbage(), 2U) << "both are eight days old";
}

TEST_F(ArtifactStoreTest, a_wall_clock_that_is_wrong_at_a_start_of_the_machine_drops_nothing) {
  [[maybe_unused]] const auto kept = [&] {
    auto store = open("ended");
    return stored(store, "kept");
  }();
  ManualClock next("next boot");
  next.set_wrong(Millis{40LL * 24 * 3'600'000});
  auto opened = ArtifactStore::open(dir / "artifacts", "living", {}, next);
  ASSERT_TRUE(opened.ok());
  auto& store = *opened;
  EXPECT_EQ(*store.collect_garbage(), 0U) << "a person may still set the clock";
  next.advance(2 * hour);
  EXPECT_EQ(*store.collect_garbage(), 1U) << "the clock was right: the machine was off for 40 days";
}

TEST_F(ArtifactStoreTest, a_lost_time_line_drops_nothing_when_the_clock_is_wrong) {
  {
    auto store = open("ended");
    stored(store, "kept");
  }
  std::ofstream(dir / "artifacts" / "time") << "not a time line";
  clock.set_wrong(Millis{40LL * 24 * 3'600'000});
  auto store = open("living");
  EXPECT_EQ(*store.collect_garbage(), 0U);
  clock.set_wrong(Millis{0});
  EXPECT_EQ(*store.collect_garbage(), 0U) << "the new line and the clock differ";
}

TEST_F(ArtifactStoreTest, a_run_that_was_resumed_owns_what_it_put_before) {
  const auto before = [&] {
    auto store = open("run");
    return stored(store, "before the crash");
  }();
  auto resumed = open("run");
  clock.advance(30 * 24 * hour);
  EXPECT_EQ(*resumed.collect_garbage(), 0U);
  EXPECT_EQ(contents(resumed, before.handle), "before the crash");
}

TEST_F(ArtifactStoreTest, a_pin_keeps_what_another_run_put) {
  const auto ref = [&] {
    auto store = open("first");
    stored(store, "not pinned");
    return stored(store, "pinned");
  }();
  auto store = open("second");
  ASSERT_TRUE(store.pin(ref).ok());
  clock.advance(30 * 24 * hour);
  EXPECT_EQ(*store.collect_garbage(), 1U);
  EXPECT_EQ(contents(store, ref.handle), "pinned");
}

TEST_F(ArtifactStoreTest, putting_something_again_makes_it_young_and_owned) {
  {
    auto first = open("first"), &store = first;
    stored(store, "again");
  }
  clock.advance(6 * 24 * hour);
  auto second = open("second");
  const auto ref = stored(second, "again");
  clock.advance(6 * 24 * hour);
  EXPECT_EQ(*second.collect_garbage(), 0U);
  EXPECT_EQ(contents(second, ref.handle), "again");
}

TEST_F(ArtifactStoreTest, the_quota_drops_the_oldest_that_no_living_run_owns_and_then_refuses) {
  const ArtifactLimits limits{.total_bytes_max = 10'000};
  const auto [oldest, newer] = [&] {
    auto store = open("ended", limits);
    const auto first = stored(store, noise(3'000, 1));
    clock.advance(1h);
    return std::pair(first, stored(store, noise(3'000, 2)));
  }();
  auto store = open("living", limits);
  const auto mine = stored(store, noise(3'000, 3));
  EXPECT_EQ(objects().size(), 3U);
  const auto more = stored(store, noise(3'000, 4));
  EXPECT_EQ(refusal(store.read(oldest.handle, 0)), ErrorCode::not_found);
  EXPECT_EQ(contents(store, newer.handle), noise(3'000, 2));

  const auto too_big = store.put(noise(5'000, 5), "text/plain");
  ASSERT_FALSE(too_big.ok());
  EXPECT_EQ(too_big.error().code, ErrorCode::exhausted);
  EXPECT_NE(too_big.error().message.find("10000"), std::string::npos) << too_big.error().message;
  EXPECT_EQ(contents(store, newer.handle), noise(3'000, 2)) << "nothing is dropped in vain";
  EXPECT_EQ(files("tmp").size(), 0U);

  EXPECT_TRUE(store.put(noise(3'500, 6), "text/plain").ok());
  EXPECT_EQ(refusal(store.read(newer.handle, 0)), ErrorCode::not_found);
  EXPECT_EQ(contents(store, mine.handle), noise(3'000, 3));
  EXPECT_EQ(contents(store, more.handle), noise(3'000, 4));
  EXPECT_EQ(stored(store, noise(3'000, 4)), more) << "what is there needs no room";
}

TEST_F(ArtifactStoreTest, its_size_is_counted_again_where_the_count_is_wrong) {
  {
    auto store = open("run", {.total_bytes_max = 10'000});
    stored(store, noise(4'000));
  }
  std::ofstream(dir / "artifacts" / "lock") << "99999999999999999999999999 nonsense";
  auto store = open("run", {.total_bytes_max = 10'000});
  EXPECT_TRUE(store.put(noise(5'000, 2), "text/plain").ok());
  std::ofstream(dir / "artifacts" / "lock") << "9999999";
  EXPECT_TRUE(store.put(noise(900, 3), "text/plain").ok());
}

TEST_F(ArtifactStoreTest, a_path_that_is_not_a_directory_of_this_user_is_refused) {
  std::ofstream(dir / "file") << "x";
  auto store = ArtifactStore::open(dir / "file", "run");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid) << store.error().message;
  store = ArtifactStore::open(dir / "file" / "below", "run");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid) << store.error().message;

  fs::create_directory(dir / "planted");
  fs::create_directory(dir / "elsewhere");
  fs::create_directory_symlink(dir / "elsewhere", dir / "planted" / "objects");
  store = ArtifactStore::open(dir / "planted", "run");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid) << store.error().message;
  EXPECT_TRUE(fs::is_empty(dir / "elsewhere"));

  if (geteuid() != 0) GTEST_SKIP() << "only root can make a directory of somebody else";
  fs::create_directory(dir / "foreign");
  ASSERT_EQ(chown((dir / "foreign").c_str(), 12'345, 12'345), 0);
  store = ArtifactStore::open(dir / "foreign", "run");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid);
  EXPECT_NE(store.error().message.find("12345"), std::string::npos) << store.error().message;
}

TEST_F(ArtifactStoreTest, a_directory_that_went_away_is_an_error_and_no_crash) {
  auto store = open();
  const auto ref = stored(store, "x");
  fs::rename(dir / "artifacts" / "objects", dir / "artifacts" / "gone");
  EXPECT_TRUE(store.put("y", "text/plain").ok()) << "it is open, wherever it is";
  fs::remove_all(dir / "artifacts");
  const auto put = store.put("z", "text/plain");
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code, ErrorCode::unavailable);
  auto sink = store.sink();
  sink.write(noise(200'000));
  EXPECT_EQ(sink.finish("text/plain").error().code, ErrorCode::unavailable);
  EXPECT_EQ(refusal(store.read(ref.handle, 0)), ErrorCode::not_found);
}

/// Runs `act` in a child process; gives its exit status.
int in_child(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Uses a store on a full disk. Returns 0, or the number of the first check that failed.
int with_a_full_disk(const fs::path& directory) {
  auto store = ArtifactStore::open(directory, "run");
  if (!store) return 1;
  const auto small = store->put("small", "text/plain");
  if (!small) return 2;
  const auto put = store->put(noise(4U << 20U), "text/plain");
  if (put || put.error().code != ErrorCode::exhausted) return 3;
  auto sink = store->sink();
  for (int i = 0; i < 64; ++i) sink.write(noise(100'000, static_cast<unsigned>(i)));
  const auto finished = sink.finish("text/plain");
  if (finished || finished.error().code != ErrorCode::exhausted) return 4;
  if (finished.error().message.find("6400000 bytes") == std::string::npos) return 5;
  if (!fs::is_empty(directory / "tmp")) return 6;
  if (contents(*store, small->handle) != "small") return 7;
  if (!store->put("small too", "text/plain")) return 8;  // there is room again
  return 0;
}

TEST_F(ArtifactStoreTest, above_the_limit_for_files_it_says_exhausted_and_leaves_no_trace) {
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1U << 20U, 1U << 20U};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 100;
              return with_a_full_disk(dir / "artifacts");
            }),
            0);
}

TEST_F(ArtifactStoreTest, on_a_full_disk_it_says_exhausted_and_leaves_no_trace) {
  fs::create_directory(dir / "disk");
  const int result = in_child([&] {
    // A mount that only this child sees, gone with it.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", (dir / "disk").c_str(), "tmpfs", 0, "size=1m") != 0)
      return 100;
    return with_a_full_disk(dir / "disk" / "artifacts");
  });
  if (result == 100) GTEST_SKIP() << "this user may not mount a small disk";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace watchdog::test
