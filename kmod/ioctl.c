// SPDX-License-Identifier: GPL-2.0
/*
 * ioctls on files of regions: what user space may ask for, checked, then done elsewhere.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process. What is promised is said in <linux/smcfs.h>.
 */
#include <linux/uaccess.h>

#include "smcfs.h"

/* Return: 0, -EINVAL, -ERANGE; -EIO: the region is dead. */
static int word_check(struct file *file, u64 pos, u32 size)
{
	u64 end = i_size_read(file_inode(file));

	if (smcfs_region_dead(smcfs_i(file_inode(file))->region))
		return -EIO;
	if ((size != 4 && size != 8) || !IS_ALIGNED(pos, size))
		return -EINVAL;
	return pos < end && size <= end - pos ? 0 : -ERANGE;
}

static int range_check(struct file *file, u64 offset, u64 length)
{
	u64 end = i_size_read(file_inode(file));

	return offset <= end && length <= end - offset ? 0 : -ERANGE;
}

/*
 * What this node stored to the word, or wrote to its page, and did not send: it would be lost when
 * the page follows, or go out once more after it. Return: 0, -EIO, -EINTR.
 */
static int flush_word(struct inode *inode, u64 pos, u32 size)
{
	/* Nor does the core know of stores to hot pages. */
	if (!READ_ONCE(smcfs_i(inode)->region->hot_used) &&
	    !filemap_range_needs_writeback(inode->i_mapping, pos, pos + size - 1))
		return 0;
	return smcfs_flush(inode, pos, pos + size - 1);
}

static long ioctl_publish(struct file *file, void __user *user)
{
	struct smcfs_word_op op = { .op = SMCFS_XFER_FLAG };
	struct inode *inode = file_inode(file);
	struct smcfs_ioc_publish p;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&p, user, sizeof(p)))
		return -EFAULT;
	if (p.flags || (p.size == 4 && p.value > U32_MAX))
		return -EINVAL;
	err = word_check(file, p.flag_offset, p.size);
	if (!err)
		err = range_check(file, p.offset, p.length);
	if (err)
		return err;
	/*
	 * The range is acknowledged before the flag is posted, so nothing can pass. Of accelerator
	 * memory the acknowledgment says only that the data is on its way through the PCIe
	 * fabric: a READ on the bulk QP belongs here then, which the fence of the flag waits for.
	 */
	if (p.length)
		err = smcfs_flush(inode, p.offset, p.offset + p.length - 1);
	if (!err)
		err = flush_word(inode, p.flag_offset, p.size);
	if (err)
		return err;
	op.pos = p.flag_offset;
	op.size = p.size;
	op.operand = p.value;
	err = smcfs_word(inode, &op);
	if (!err)
		smcfs_stat_add(&smcfs_i(inode)->region->stats, SMCFS_STAT_PUBLISHES, 1);
	return err;
}

static const enum smcfs_xfer_op atomic_ops[__SMCFS_ATOMIC_MAX] = {
	[SMCFS_ATOMIC_FETCH_ADD]	= SMCFS_XFER_FETCH_ADD,
	[SMCFS_ATOMIC_COMPARE_SWAP]	= SMCFS_XFER_COMPARE_SWAP,
};

static long ioctl_atomic(struct file *file, void __user *user)
{
	struct smcfs_word_op op = { .size = sizeof(u64) };
	struct inode *inode = file_inode(file);
	struct smcfs_ioc_atomic a;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&a, user, sizeof(a)))
		return -EFAULT;
	if (a.flags || a.op == SMCFS_ATOMIC_UNSPEC || a.op > SMCFS_ATOMIC_MAX)
		return -EINVAL;
	err = word_check(file, a.offset, op.size);
	if (!err)
		err = flush_word(inode, a.offset, op.size);
	if (err)
		return err;
	op.op = atomic_ops[a.op];
	op.pos = a.offset;
	op.operand = a.operand;
	op.compare = a.compare;
	err = smcfs_word(inode, &op);
	if (err)
		return err;
	smcfs_stat_add(&smcfs_i(inode)->region->stats, SMCFS_STAT_ATOMICS, 1);
	a.old = op.old;
	return copy_to_user(user, &a, sizeof(a)) ? -EFAULT : 0;
}

static long ioctl_wait(struct file *file, void __user *user)
{
	struct smcfs_ioc_wait w;
	u64 bits;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&w, user, sizeof(w)))
		return -EFAULT;
	if (w.flags || !w.mask || w.cond == SMCFS_WAIT_UNSPEC || w.cond > SMCFS_WAIT_MAX ||
	    w.timeout_ms > SMCFS_WAIT_TIMEOUT_MS_MAX)
		return -EINVAL;
	err = word_check(file, w.offset, w.size);
	if (err)
		return err;
	bits = w.size == 4 ? U32_MAX : U64_MAX;
	if ((w.value | w.mask) & ~bits)
		return -EINVAL;
	w.seen = 0;
	err = smcfs_wait(file_inode(file), &w);
	if ((!err || err == -ETIMEDOUT) && copy_to_user(user, &w, sizeof(w)))
		return -EFAULT;
	return err;
}

/* ->unlocked_ioctl. */
long smcfs_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case SMCFS_IOC_PUBLISH:
		return ioctl_publish(file, user);
	case SMCFS_IOC_ATOMIC:
		return ioctl_atomic(file, user);
	case SMCFS_IOC_WAIT:
		return ioctl_wait(file, user);
	default:
		return -ENOTTY;
	}
}
