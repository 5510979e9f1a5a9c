// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Files, shared-memory objects, huge pages and limits, on a device.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <future>

#include <catch2/catch.hpp>

#include "memory/limits.hpp"
#include "node.hpp"

namespace smc::test {
namespace {

struct TempFile {
    explicit TempFile(std::string where, const std::vector<std::uint8_t>& data)
        : path(std::move(where))
    {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(data.data()),
                   static_cast<std::streamsize>(data.size()));
    }
    ~TempFile() { std::filesystem::remove(path); }
    std::vector<std::uint8_t> bytes() const
    {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::string path;
};

Result<ExportInfo> add(Node& node, ExportSpec spec)
{
    return node.wait<ExportInfo>([&](Target& target, Done<ExportInfo> done) {
        target.add_export(std::move(spec), std::move(done));
    });
}

ExportSpec file_spec(const std::string& path, std::uint64_t offset = 0, std::uint64_t length = 0)
{
    ExportSpec spec;
    spec.name = "f";
    spec.source = FilePath{path, offset, length};
    return spec;
}

} // namespace

TEST_CASE("a shared-memory object is exported from and to any byte", "[memory]")
{
    constexpr std::uint64_t kOffset = 4097;
    constexpr std::uint64_t kLength = 9001;
    auto data = pattern(20000, 1);
    const TempFile file("/dev/shm/rdma-target-test", data);
    Node node;
    const auto info = add(node, file_spec(file.path, kOffset, kLength));
    if (!info)
        FAIL(info.error().what);
    CHECK(info->provider == "file");
    CHECK(info->size == kLength);
    auto client = connect(node, 1);
    const auto grant = node.grant(1, "f").value();
    CHECK(grant.keys == Keys::window);
    const auto& extent = grant.extents.front();
    const auto seen = client.read->read(extent.addr, extent.rkey_read, kLength).value();
    CHECK(std::equal(seen.begin(), seen.end(), data.begin() + kOffset));
    const auto news = pattern(kLength, 2);
    REQUIRE(client.bulk->write(extent.addr, extent.rkey_bulk, news));
    std::copy(news.begin(), news.end(), data.begin() + kOffset);
    CHECK(file.bytes() == data); // and nothing around it
    CHECK(client.read->read(extent.addr - 1, extent.rkey_read, 8).error().code == EREMOTEIO);
}

TEST_CASE("memory of another process is exported by its descriptor", "[memory]")
{
    Fd fd(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(::ftruncate(fd.get(), 8192) == 0);
    ExportSpec spec;
    spec.name = "m";
    spec.source = FdMemory{Fd(::dup(fd.get())), 0, 0};
    Node node;
    const bool added = add(node, std::move(spec)).has_value();
    REQUIRE(added);
    auto client = connect(node, 1);
    const auto extent = node.grant(1, "m").value().extents.front();
    REQUIRE(client.bulk->write(extent.addr + 100, extent.rkey_bulk, pattern(50, 3)));
    std::vector<std::uint8_t> seen(50);
    REQUIRE(::pread(fd.get(), seen.data(), seen.size(), 100) == 50);
    CHECK(seen == pattern(50, 3));
}

// TEST_DIR is on a file system with a disk below it, as far as the kernel knows. Kernels differ: a
// file there is exported and works, or refused at once with the remedy.
TEST_CASE("a file on a disk is exported for reading or refused clearly", "[.disk]")
{
    const char* directory = std::getenv("TEST_DIR");
    REQUIRE(directory != nullptr);
    const auto data = pattern(10000, 4);
    const TempFile file(std::string(directory) + "/rdma-target-test", data);
    Node node;
    auto spec = file_spec(file.path);
    spec.readonly = true;
    const auto info = add(node, std::move(spec));
    if (!info) {
        WARN(info.error().what);
        CHECK(info.error().what.find("/dev/shm") != std::string::npos);
        return;
    }
    WARN("exported");
    auto client = connect(node, 1);
    const auto grant = node.grant(1, "f").value();
    CHECK(grant.keys == Keys::mr);
    const auto& extent = grant.extents.front();
    CHECK(client.read->read(extent.addr, extent.rkey_read, data.size()).value() == data);
    CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 9)).error().code ==
          EREMOTEIO);
    CHECK(file.bytes() == data);
}

TEST_CASE("a file on a disk is exported for writing or refused clearly", "[.disk]")
{
    const auto data = pattern(10000, 5);
    const TempFile file(std::string(std::getenv("TEST_DIR")) + "/rdma-target-test", data);
    Node node;
    const auto info = add(node, file_spec(file.path));
    if (!info) {
        WARN(info.error().what);
        CHECK(info.error().what.find("/dev/shm") != std::string::npos);
        return;
    }
    WARN("exported");
    auto client = connect(node, 1);
    const auto extent = node.grant(1, "f").value().extents.front();
    REQUIRE(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(100, 6)));
    const auto bytes = file.bytes();
    CHECK(std::equal(bytes.begin(), bytes.begin() + 100, pattern(100, 6).begin()));
}

TEST_CASE("huge pages are exported to an odd length", "[.hugepages]")
{
    constexpr std::uint64_t kLength = (2 << 20) + 4097;
    Node node;
    ExportSpec spec;
    spec.name = "h";
    spec.source = HostMemory{kLength, true};
    const auto info = add(node, std::move(spec));
    if (!info)
        FAIL(info.error().what);
    CHECK(info->provider == "hugepages");
    CHECK(info->size == kLength);
    auto client = connect(node, 1);
    const auto extent = node.grant(1, "h").value().extents.front();
    REQUIRE(client.bulk->write(extent.addr + kLength - 64, extent.rkey_bulk, pattern(64, 1)));
    CHECK(client.read->read(extent.addr + kLength - 64, extent.rkey_read, 64).value() ==
          pattern(64, 1));
    CHECK(client.read->read(extent.addr + kLength - 63, extent.rkey_read, 64).error().code ==
          EREMOTEIO);
}

TEST_CASE("too few huge pages are named", "[.nohugepages]")
{
    Node node;
    ExportSpec spec;
    spec.name = "h";
    spec.source = HostMemory{1ULL << 30, true};
    const auto info = add(node, std::move(spec));
    REQUIRE_FALSE(info);
    CHECK(info.error().code == ENOMEM);
    CHECK(info.error().what.find("vm.nr_hugepages") != std::string::npos);
}

// Run without CAP_IPC_LOCK and with a limit of 8 MiB.
TEST_CASE("the limit on locked memory is named before anything is pinned", "[.memlock]")
{
    REQUIRE_FALSE(memory::may_lock_without_limit());
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    REQUIRE(limit.rlim_cur == 8U << 20);
    Node node;
    node.export_host("small", 1 << 20);
    ExportSpec spec;
    spec.name = "large";
    spec.source = HostMemory{8U << 20, false};
    const auto info = add(node, std::move(spec));
    REQUIRE_FALSE(info);
    WARN(info.error().what);
    CHECK(info.error().code == ENOMEM);
    CHECK(info.error().what.find("RLIMIT_MEMLOCK is 8388608") != std::string::npos);
    CHECK(info.error().what.find("LimitMEMLOCK=infinity") != std::string::npos);
    CHECK(node.call([](Target& target) { return target.names(); }) ==
          std::vector<std::string>{"small"});
}

// Long enough to pin that the loop has time for others.
constexpr std::uint64_t kLongBytes = 512ULL << 20;

TEST_CASE("while memory is pinned the target serves others, and the export can be given up",
          "[memory]")
{
    TargetOptions options;
    options.windows = GENERATE(true, false);
    CAPTURE(options.windows);
    Node node(options);
    node.export_host("small", 4096);
    auto client = connect(node, 1);
    std::promise<Result<ExportInfo>> added;
    std::promise<Result<Grant>> granted;
    node.call([&](Target& target) {
        ExportSpec spec;
        spec.name = "long";
        spec.source = HostMemory{kLongBytes, false};
        target.add_export(std::move(spec), [&](const auto& info) { added.set_value(info); });
        target.grant(1, "long", [&](const auto& grant) { granted.set_value(grant); });
    });
    auto done = added.get_future();
    auto grant = granted.get_future();
    const auto pending = [](auto& future) {
        return future.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    };
    CHECK(node.call([](Target& target) { return target.names(); }).size() == 2);
    // Where keys are registrations nothing is pinned before somebody uses it.
    CHECK((pending(done) || !options.windows));
    CHECK(pending(grant));
    SECTION("given up")
    {
        REQUIRE(node.unexport("long"));
        const auto info = done.get();
        CHECK((info ? 0 : info.error().code) == (options.windows ? ECANCELED : 0));
        CHECK(grant.get().error().code == ENOENT);
        CHECK(node.call([](Target& target) { return target.names(); }).size() == 1);
        CHECK(node.grant(1, "small")); // the session is as before
    }
    SECTION("waited for")
    {
        CHECK(done.get());
        const auto got = grant.get();
        REQUIRE(got);
        const auto& last = got->extents.back();
        CHECK(client.read->read(last.addr + last.length - 8, last.rkey_read, 8));
    }
    SECTION("its session is closed meanwhile")
    {
        REQUIRE(node.close(1));
        CHECK(grant.get().error().code == ENOTCONN);
        CHECK(node.unexport("long"));
        done.wait();
    }
    SECTION("the target ends meanwhile")
    {
        CHECK(pending(grant)); // and never comes: what ends waits for a step of it, no more
    }
}

} // namespace smc::test
