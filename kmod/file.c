// SPDX-License-Identifier: GPL-2.0
/*
 * Open files of regions: open, read, write, mmap, barriers, close.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process.
 * Locking: the inode lock serializes writers, as in any filesystem.
 * Failure: what close could not send stays dirty and pins the mount until it was sent, or was
 *	discarded by an explicit command.
 */
#include <linux/fadvise.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/splice.h>
#include <linux/uio.h>

#include "smcfs.h"
#include "trace.h"

static struct smcfs_region *file_region(struct file *file)
{
	return smcfs_i(file_inode(file))->region;
}

/*
 * Who was killed is not kept waiting; what it leaves behind is sent by the region's own flush. (A
 * task that exits has had its SIGKILL taken off; the exit code tells.)
 */
static bool caller_was_killed(void)
{
	return fatal_signal_pending(current) ||
	       ((current->flags & PF_EXITING) && (current->signal->group_exit_code & 0x7f));
}

static int smcfs_open(struct inode *inode, struct file *file)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	int err = smcfs_region_wait_bound(region);

	if (err)
		return err == -EISDIR ? -ESTALE : err;
	smcfs_inode_update(inode);
	if ((file->f_mode & FMODE_WRITE) && (region->desc.flags & SMCFS_RF_READONLY))
		return -EROFS;
	err = smcfs_region_open(region);
	if (err)
		return err;
	if (file->f_mode & FMODE_WRITE) {
		err = smcfs_region_open_writer(region);
		if (err)
			goto err_close;
	}
	/* Close-to-open: pages that somebody else may have changed are fetched anew. */
	if (READ_ONCE(region->cto) && READ_ONCE(region->state) == SMCFS_REGION_ACTIVE) {
		err = smcfs_drop_clean(inode, 0, LLONG_MAX);
		if (err == -EINTR)
			goto err_writer;
	}
	file->private_data = smcfs_ahead_open();
	err = file->private_data ? 0 : -ENOMEM;
	if (err)
		goto err_writer;
	file->f_mode |= FMODE_CAN_ODIRECT;
	return 0;

err_writer:
	if (file->f_mode & FMODE_WRITE)
		smcfs_region_close_writer(region, inode);
err_close:
	smcfs_region_close(region);
	return err;
}

/* close(2): with close-to-open what was written is at the target when it returns. */
static int smcfs_file_flush(struct file *file, fl_owner_t id)
{
	struct inode *inode = file_inode(file);
	errseq_t since = filemap_sample_wb_err(inode->i_mapping);

	if (!(file->f_mode & FMODE_WRITE) || !READ_ONCE(file_region(file)->cto) ||
	    caller_was_killed())
		return 0;
	/* The error stays for fsync: a child that exits must not take it from its parent. */
	return smcfs_flush(inode, 0, LLONG_MAX) ?: filemap_check_wb_err(inode->i_mapping, since);
}

/* The last close, or munmap: the page tables have given their dirty bits to the folios by now. */
static int smcfs_release(struct inode *inode, struct file *file)
{
	struct smcfs_region *region = smcfs_i(inode)->region;

	if (file->f_mode & FMODE_WRITE) {
		if (!caller_was_killed())
			smcfs_flush(inode, 0, LLONG_MAX);
		if (!smcfs_region_dead(region) && !smcfs_inode_clean(inode))
			smcfs_region_pin(region, file);
		smcfs_region_close_writer(region, inode);
	}
	smcfs_region_close(region);
	smcfs_ahead_close(file->private_data);
	return 0;
}

static ssize_t smcfs_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	if (smcfs_region_dead(file_region(iocb->ki_filp)))
		return -EIO;
	if (iocb->ki_flags & IOCB_DIRECT)
		return smcfs_direct_read(iocb, to);
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		smcfs_ahead_read(iocb->ki_filp, iocb->ki_pos, iov_iter_count(to));
	return generic_file_read_iter(iocb, to);
}

/* A region does not grow: what would go past its end is ENOSPC, as on a full block device. */
static ssize_t write_clip(struct kiocb *iocb, struct iov_iter *from)
{
	loff_t size = i_size_read(file_inode(iocb->ki_filp));

	if (iocb->ki_pos >= size)
		return -ENOSPC;
	iov_iter_truncate(from, size - iocb->ki_pos);
	return iov_iter_count(from);
}

static ssize_t smcfs_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t ret;

	if (smcfs_region_dead(smcfs_i(inode)->region))
		return -EIO;
	if (iocb->ki_flags & IOCB_NOWAIT) {
		if (!inode_trylock(inode))
			return -EAGAIN;
	} else if (down_write_killable(&inode->i_rwsem)) {
		return -EINTR;	/* its owner may be waiting for the network */
	}
	ret = generic_write_checks(iocb, from);
	if (ret > 0)
		ret = write_clip(iocb, from);
	if (ret > 0) {
		if (iocb->ki_flags & IOCB_DIRECT)
			ret = smcfs_direct_write(iocb, from);
		else
			ret = __generic_file_write_iter(iocb, from);
		/* A descriptor's own O_SYNC or not: acknowledged when it returns. */
		if (smcfs_modes_eager(smcfs_i(inode)->region))
			iocb->ki_flags |= IOCB_DSYNC;
	}
	inode_unlock(inode);
	if (ret > 0)
		ret = generic_write_sync(iocb, ret);
	return ret;
}

/**
 * smcfs_fsync() - the barrier: fsync, fdatasync, msync(MS_SYNC), O_SYNC
 * @file: of a region.
 * @start: first byte.
 * @end: last byte, inclusive.
 * @datasync: unused, there is nothing but data.
 *
 * Context: process, killable.
 * Return: 0: every change made before the call is in the target's memory; -EIO: some
 * is not, or a write failed since this file's last barrier; nothing is lost, a later barrier sends
 * it; -EINTR.
 */
static int smcfs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct smcfs_region *region = file_region(file);
	u64 begun = ktime_get_ns();
	int err, wb_err;

	err = smcfs_flush(file_inode(file), start, end);
	wb_err = file_check_and_advance_wb_err(file);
	smcfs_stat_add(&region->stats, SMCFS_STAT_BARRIERS, 1);
	smcfs_latency_add(region->latency, SMCFS_LATENCY_BARRIER, ktime_get_ns() - begun);
	trace_smcfs_barrier(region->id, start, end, err ?: wb_err);
	return err ?: wb_err;
}

static int smcfs_fadvise(struct file *file, loff_t offset, loff_t length, int advice)
{
	loff_t end;

	if (advice != POSIX_FADV_DONTNEED)
		return generic_fadvise(file, offset, length, advice);
	if (offset < 0 || length < 0)
		return -EINVAL;
	if (!length || length > LLONG_MAX - offset)
		end = LLONG_MAX;
	else
		end = offset + length - 1;
	return smcfs_acquire(file, offset, end);
}

static const struct vm_operations_struct smcfs_vm_ops = {
	.fault		= smcfs_fault,
	.map_pages	= smcfs_map_pages,
	.page_mkwrite	= smcfs_page_mkwrite,
};

static void smcfs_reader_open(struct vm_area_struct *vma)
{
	smcfs_hot_reader_open(file_region(vma->vm_file));
}

static void smcfs_reader_close(struct vm_area_struct *vma)
{
	smcfs_hot_reader_close(file_region(vma->vm_file));
}

/* Of mappings that can never write to the region: private ones, and of files open for reading. */
static const struct vm_operations_struct smcfs_reader_vm_ops = {
	.open		= smcfs_reader_open,
	.close		= smcfs_reader_close,
	.fault		= smcfs_fault,
	.map_pages	= smcfs_map_pages,
	.page_mkwrite	= smcfs_page_mkwrite,
};

static int smcfs_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (smcfs_region_dead(file_region(file)))
		return -EIO;
	file_accessed(file);
	vma->vm_ops = &smcfs_vm_ops;
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) != (VM_SHARED | VM_MAYWRITE)) {
		vma->vm_ops = &smcfs_reader_vm_ops;
		smcfs_reader_open(vma);
	}
	return 0;
}

const struct file_operations smcfs_file_fops = {
	.open		= smcfs_open,
	.flush		= smcfs_file_flush,
	.release	= smcfs_release,
	.read_iter	= smcfs_read_iter,
	.write_iter	= smcfs_write_iter,
	.mmap		= smcfs_mmap,
	.fsync		= smcfs_fsync,
	.fadvise	= smcfs_fadvise,
	.unlocked_ioctl	= smcfs_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= generic_file_llseek,
	.splice_read	= filemap_splice_read,
	.splice_write	= iter_file_splice_write,
};
